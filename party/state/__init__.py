"""What a node keeps on disk, and what it does when that was lost."""
