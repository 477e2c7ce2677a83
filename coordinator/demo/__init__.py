"""The demo: three insurers on this machine."""
