"""What the commands write to, and how they ask."""
