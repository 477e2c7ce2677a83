"""Jobs with all their parties in this one process, over files that lie here."""
