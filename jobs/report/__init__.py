"""The report of a job for people: one self-contained page, and a short form for notebooks."""
