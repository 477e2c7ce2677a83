"""Association rules and their measures."""
