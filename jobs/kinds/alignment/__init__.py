"""The rows that several parties have in common, and nothing else."""
