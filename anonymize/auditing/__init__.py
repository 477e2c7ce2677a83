"""Query auditing: aggregate queries are answered truthfully, or denied where answers together would tell a value."""
