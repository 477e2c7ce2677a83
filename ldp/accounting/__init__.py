"""What is spent after shuffling, sampling and composition, and noise that is added to sums by several parties."""
