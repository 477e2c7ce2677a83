"""What the frequency service keeps on disk: rounds, reports until they are tallied, and who took part."""
