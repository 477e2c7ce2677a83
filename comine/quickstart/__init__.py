"""`comine quickstart`: from files to the result of a federation on this machine, by one command."""
