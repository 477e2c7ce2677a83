"""One anonymised release of the columns of several parties."""

from jobs.kinds.key import keys

KEYS = keys(("anonymize",), ("vertical",), ("exact",))
