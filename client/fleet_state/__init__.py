"""What a fleet keeps of its clients: coins, spent budgets, kept answers and a record on the disk."""
