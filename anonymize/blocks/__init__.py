"""Tables that do not fit memory: read in blocks, counted by their distinct tuples, released row by row."""
