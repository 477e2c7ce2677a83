"""The services of a node beside joint jobs."""
