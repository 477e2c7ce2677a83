"""Anonymising the rows of several parties together, as if they lay in one table."""
