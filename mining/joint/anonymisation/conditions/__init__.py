"""What is asked of a class, decided on shared counts: its size, its parts, and its sensitive values."""
