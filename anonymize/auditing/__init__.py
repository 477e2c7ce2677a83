"""Query auditing: aggregate queries are answered truthfully, or denied where answers would determine a value."""
