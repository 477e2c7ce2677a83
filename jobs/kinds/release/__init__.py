"""One anonymised release of the rows, or columns, of several parties."""

from jobs.kinds.key import keys

KEYS = keys(("anonymize",), ("horizontal", "vertical"), ("exact",))
