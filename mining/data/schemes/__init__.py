"""Where data lie: a module for each scheme of sources, and `registry`, which lists them."""
