"""Connections and credentials of gRPC under mutual TLS, for nodes and coordinators alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import grpc

from link.pki.identity import Identity
from link.relay.gateway import local_address

# Above MAX_ENVELOPE_BYTES, so that who gets an envelope that is too long can read it, and name its sender. What is
# longer than this is cut off by gRPC, which bounds the memory that a caller can take: the accepting end then sees a
# stream that breaks and no more, and the calling end gets RESOURCE_EXHAUSTED.
MAX_MESSAGE_BYTES: Final = 8 << 20

# What a caller may send on a stream of which nobody reads. It is fixed: what gRPC measures and adapts by itself grows
# to megabytes, for every stream of a peer that sends much. A message that is read gets the memory that it needs
# besides.
WINDOW_BYTES: Final = 64 << 10

# What the called party may send so, on which a caller relies: enough to keep a long line full.
ANSWERED_BYTES: Final = 4 << 20

HANDSHAKE_S: Final = 10  # within which a caller has to show a certificate, at either end

# A connection on which nothing comes is tried, and given up where the other end does not answer. gRPC answers by
# itself, however busy the node is: only a process or machine that hangs, or a path that is cut, does not.
SILENCE_S: Final = 5
ANSWER_S: Final = 5

OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", SILENCE_S * 1000),
    ("grpc.keepalive_timeout_ms", ANSWER_S * 1000),  # which TCP goes by
    ("grpc.http2.ping_timeout_ms", ANSWER_S * 1000),  # without it gRPC waits a minute, whatever the line above says
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.bdp_probe", 0),  # pings while data flow, whose answers would come late on a slow link
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS: Final = (
    *OPTIONS,
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.so_reuseport", 0),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_S * 1000),
    ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
    ("grpc.server.max_pending_requests", 500),  # that the node has not looked at; above, calls are refused unseen
    ("grpc.server.max_pending_requests_hard_limit", 1000),
)
CHANNEL_OPTIONS: Final = (
    *OPTIONS,
    ("grpc.http2.lookahead_bytes", ANSWERED_BYTES),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", HANDSHAKE_S * 1000),  # in spite of its name, for connecting and greeting
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
)


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Mutual TLS for a node's server: callers without a certificate of the authority are refused."""
    pair = (identity.key_pem, identity.certificate_pem)
    return grpc.ssl_server_credentials([pair], identity.trust.ca_pem, require_client_auth=True)


def renewable_credentials(identity: Callable[[], Identity]) -> grpc.ServerCredentials:
    """The same of a node whose certificate may be renewed while it runs.

    Args:
        identity: Who the node is by now, asked for each connection; connections that are open go on as they are.
    """
    shown = identity()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal shown
        present = identity()
        if present is shown:
            return None
        shown = present
        return _shown(present)

    # The stubs of gRPC do not know that None stands for what was shown before.
    return grpc.dynamic_ssl_server_credentials(_shown(shown), renewed, True)  # type: ignore[arg-type]


def _shown(identity: Identity) -> grpc.ServerCertificateConfiguration:
    pair = (identity.key_pem, identity.certificate_pem)
    return grpc.ssl_server_certificate_configuration([pair], identity.trust.ca_pem)


def channel_credentials(identity: Identity) -> grpc.ChannelCredentials:
    """Mutual TLS for calls to nodes."""
    return grpc.ssl_channel_credentials(identity.trust.ca_pem, identity.key_pem, identity.certificate_pem)


def dial(identity: Identity, peer: str, address: str) -> grpc.aio.Channel:
    """A connection to the party called `peer`, whatever name its address has; refused where another one answers.

    Args:
        identity: Who calls.
        peer: The party.
        address: HOST:PORT, or the text of a `link.relay.address.RelayAddress`.
    """
    options = (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", peer))
    return grpc.aio.secure_channel(local_address(identity, peer, address), channel_credentials(identity), options)


def dial_blocking(identity: Identity, peer: str, address: str) -> grpc.Channel:
    """The same for callers without an event loop."""
    options = (*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", peer))
    return grpc.secure_channel(local_address(identity, peer, address), channel_credentials(identity), options)
