"""The relay: pairs byte streams of those who dial out to it, and sees no more than who, when and how much."""
