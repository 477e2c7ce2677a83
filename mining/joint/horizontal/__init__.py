"""Joint mining of horizontally partitioned data: every party holds whole rows of its own."""
