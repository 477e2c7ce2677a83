"""Logs of programs that serve: JSON lines that hold no data, and whose reader makes nobody wait."""
