"""The tables of a job file as frozen models, and how such files are read."""
