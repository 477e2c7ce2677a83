"""Hands one message over to push services (RFC 8030), for many browsers at once."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from typing import Final, Literal

import httpx2
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from console.push.base64url import read
from console.push.subscriptions import Subscription, Subscriptions
from console.push.vapid import authorization
from crypto.primitives.push_encryption import encrypt

Outcome = Literal["OK", "gone", "failed"]

SIZE: Final = 256
"""Bytes to which every message is padded, so that its length tells nothing."""

WITHIN_S: Final = 10.0
AT_ONCE: Final = 8
KEEP_S: Final = 43_200
"""How long a push service keeps a message for a browser that is off."""

_TAKEN: Final = frozenset({200, 201, 202, 204})
_GONE: Final = frozenset({404, 410})


async def send(
    subscriptions: Subscriptions, browsers: Sequence[Subscription], message: bytes, contact: str
) -> list[Outcome]:
    """Sends a message to browsers; nothing that a push service answers leads elsewhere, and no body of it is read.

    Args:
        subscriptions: Where they are kept, with the key that signs.
        browsers: Those that are told.
        message: At most `SIZE` bytes.
        contact: Whom push services can reach.

    Returns:
        What has become of each: `gone` where the push service says that there is no such browser any more.

    Raises:
        ComineError: The key cannot be read.
    """
    key = await asyncio.to_thread(subscriptions.key)
    context = await asyncio.to_thread(ssl.create_default_context)
    limit = asyncio.Semaphore(AT_ONCE)
    async with httpx2.AsyncClient(verify=context, follow_redirects=False, timeout=WITHIN_S) as client:

        async def one(browser: Subscription) -> Outcome:
            async with limit:
                return await _hand_over(client, subscriptions, browser, key, message, contact)

        return await asyncio.gather(*map(one, browsers))


async def _hand_over(
    client: httpx2.AsyncClient,
    subscriptions: Subscriptions,
    browser: Subscription,
    key: EllipticCurvePrivateKey,
    message: bytes,
    contact: str,
) -> Outcome:
    origin = subscriptions.place_of(browser).origin
    headers = {
        "Authorization": authorization(key, origin, contact, time.time()),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(KEEP_S),
        "User-Agent": "comine",
    }
    body = encrypt(message, read(browser.key), read(browser.secret), SIZE)
    try:
        async with (
            asyncio.timeout(WITHIN_S),
            client.stream("POST", browser.endpoint, content=body, headers=headers) as answer,
        ):
            status = answer.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TimeoutError):
        return "failed"
    return "OK" if status in _TAKEN else "gone" if status in _GONE else "failed"
