"""Full-domain recoding: every value of a column is generalised to the same level of its hierarchy."""
