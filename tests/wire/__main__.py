"""`python -m tests.wire` freezes the frames of this wire version."""

from tests.wire.baseline import freeze

freeze()
