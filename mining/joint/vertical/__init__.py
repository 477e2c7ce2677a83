"""Joint mining of vertically partitioned data: every party holds columns of its own about the same people."""
