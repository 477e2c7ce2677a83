"""Proof of what was said: hash chains over a session's frames, signed receipts, and words that no sender can deny."""
