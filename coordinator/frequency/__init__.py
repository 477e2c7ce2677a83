"""Collections of the frequency service: made, fed, read, exported and simulated."""
