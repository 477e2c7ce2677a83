"""A node as a server: its port, callers, limits, logs and health."""
