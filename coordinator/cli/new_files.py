"""Files that a command writes for people to edit."""

from __future__ import annotations

from pathlib import Path


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Writes a file, whole or not at all.

    Raises:
        ConfigurationError: It exists, and may not be replaced.
        ResourceError: It cannot be written.
    """
    from link.errors import ConfigurationError, ResourceError
    from link.files.private_file import replace_private

    if path.exists() and not force:
        raise ConfigurationError(f"{path} exists; use --force to replace it, or --out to write elsewhere")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_private(path, text.encode())
    except OSError as error:
        raise ResourceError(f"{path} cannot be written ({error.strerror}); use --out to write elsewhere") from None
