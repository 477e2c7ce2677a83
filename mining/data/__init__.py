"""Transactions and tables, and the sources that they are read from."""
