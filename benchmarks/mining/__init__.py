"""Mining, alone and jointly, and what it takes at size."""
