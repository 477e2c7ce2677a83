"""The `comine` command, one module a command; each loads what it needs only when it runs."""
