"""How jobs end at a party: what is held, released, signed and kept for those who fetch it, or why a job failed."""
