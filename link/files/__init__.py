"""Files and texts that other people read or wrote."""
