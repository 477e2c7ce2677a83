"""The datasets of a node: read, guarded, and looked over for their owner."""
