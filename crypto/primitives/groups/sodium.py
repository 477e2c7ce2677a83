"""Finding libsodium: the system's if it will do, else the copy that `rbcl` carries.

The system's library comes first since it gets the distribution's security updates and loads in a container with a
read-only root, where `rbcl`, which writes its copy to a temporary file and maps that, cannot.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from link.errors import ConfigurationError

MINIMUM: Final = (1, 0, 18)
SONAMES: Final = ("libsodium.so.26", "libsodium.so.23", "libsodium.so", "libsodium.26.dylib", "libsodium.23.dylib")

Function = Callable[..., int]


@dataclass(frozen=True)
class Sodium:
    """The functions of one loaded libsodium that comine uses. Every call releases the interpreter's lock.

    Arguments are addresses (integers) or bytes. Functions with a return code give 0 for success, except
    `is_valid_point`, which gives 1 for yes.

    Attributes:
        origin: `"system"` or `"rbcl"`.
        version: As libsodium names it, such as `"1.0.18"`.
    """

    origin: str
    version: str
    is_valid_point: Function
    add: Function
    subtract: Function
    from_hash: Function
    multiply: Function
    base_multiply: Function
    scalar_reduce: Function
    scalar_invert: Function


# Field of Sodium → C name, number of pointers, whether a return code is given.
_PROTOTYPES: Final[dict[str, tuple[str, int, bool]]] = {
    "is_valid_point": ("crypto_core_ristretto255_is_valid_point", 1, True),
    "add": ("crypto_core_ristretto255_add", 3, True),
    "subtract": ("crypto_core_ristretto255_sub", 3, True),
    "from_hash": ("crypto_core_ristretto255_from_hash", 2, True),
    "multiply": ("crypto_scalarmult_ristretto255", 3, True),
    "base_multiply": ("crypto_scalarmult_ristretto255_base", 2, True),
    "scalar_reduce": ("crypto_core_ristretto255_scalar_reduce", 2, False),
    "scalar_invert": ("crypto_core_ristretto255_scalar_invert", 2, True),
}


@functools.cache
def library() -> Sodium:
    """The libsodium of this process, found at the first call.

    Raises:
        ConfigurationError: Neither the system nor `rbcl` has one that will do.
    """
    found = load_system() or load_bundled()
    if found is None:
        raise ConfigurationError(
            "No libsodium of version 1.0.18 or later was found; install your system's package "
            "(Debian and Ubuntu: libsodium23, Fedora: libsodium, macOS: brew install libsodium)."
        )
    return found


def load_system() -> Sodium | None:
    """The system's libsodium, or None where it is missing, too old or built without ristretto255."""
    for name in _system_names():
        try:
            handle = ctypes.CDLL(name)
        except OSError:
            continue
        if (bound := bind(handle, "system")) is not None:
            return bound
    return None


def load_bundled() -> Sodium | None:
    """The libsodium inside `rbcl`, or None where that is missing or its temporary file cannot be mapped."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            import rbcl  # 15 to 37 ms, so only when needed
    except (ImportError, OSError):
        return None
    # The mapping stays valid without its file, which rbcl would leave behind in every process.
    path = getattr(sys.modules.get("rbcl._sodium"), "lib_path", None)
    if path is not None and os.path.exists(path):
        os.unlink(path)
    return bind(rbcl._sodium, "rbcl")


def _system_names() -> Iterator[str]:
    yield from SONAMES
    # Runs ldconfig and a compiler, so it is asked last.
    if (found := ctypes.util.find_library("sodium")) is not None:
        yield found


def bind(handle: ctypes.CDLL, origin: str) -> Sodium | None:
    """The functions of a library; None where it lacks one, or is too old."""
    try:
        # Indexing, unlike attributes, gives function objects of our own, whose prototypes nobody else changes.
        version_string = handle["sodium_version_string"]
        version_string.restype = ctypes.c_char_p
        version = version_string().decode()
        if parsed(version) < MINIMUM or handle["sodium_init"]() < 0:
            return None
        functions = {field: _function(handle, *prototype) for field, prototype in _PROTOTYPES.items()}
    except AttributeError:
        return None
    return Sodium(origin=origin, version=version, **functions)


def _function(handle: ctypes.CDLL, name: str, pointers: int, returns_code: bool) -> Function:
    function = handle[name]
    function.argtypes = [ctypes.c_void_p] * pointers
    function.restype = ctypes.c_int if returns_code else None
    return function


def parsed(version: str) -> tuple[int, ...]:
    """The numbers of a version, as they are compared."""
    numbers = version.split("-")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())
