"""One anonymised release of the rows, or columns, of several parties."""
