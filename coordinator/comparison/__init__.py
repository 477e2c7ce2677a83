"""One job under several privacy models: run, compared, written."""
