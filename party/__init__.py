"""The node of one organisation: it holds the data, decides by its policy, and takes its part in joint jobs."""
