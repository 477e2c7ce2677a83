"""Models learnt from rows in one place: what joint learning must equal, and what its outcome is used as."""
