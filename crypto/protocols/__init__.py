"""Protocols between parties: each file reads like its paper, the roles side by side."""
