"""Audited queries: coordinators ask for aggregates of a table; what would reveal somebody's value is denied."""
