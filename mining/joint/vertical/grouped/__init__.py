"""Column groups: parties that hold the same columns of different rows."""
