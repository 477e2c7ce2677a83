"""Audited queries: coordinators ask for aggregates of a table; what would tell somebody's value is denied."""
