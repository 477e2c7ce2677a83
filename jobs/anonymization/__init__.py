"""What `comine anonymize` runs: its configuration file, a run of an algorithm, and the folders it writes."""
