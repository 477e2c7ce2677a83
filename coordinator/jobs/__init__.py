"""Joint jobs: planned, started, driven to their end, watched, simulated and compared."""
