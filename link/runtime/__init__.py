"""The process at its machine: processes for heavy work, its limit of memory, the service manager, metrics shown."""
