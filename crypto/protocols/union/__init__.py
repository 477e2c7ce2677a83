"""The union by prefixes, and the size classes of lists."""
