"""How a node finds out that it lost a part of its state or was given an older copy, and how it gets it back."""
