"""Identity replacement: each record published as a virtual one that is like it."""
