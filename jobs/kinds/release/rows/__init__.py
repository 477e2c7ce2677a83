"""One anonymised release of the rows of several parties."""

from jobs.kinds.key import keys

KEYS = keys(("anonymize",), ("horizontal",), ("exact",))
