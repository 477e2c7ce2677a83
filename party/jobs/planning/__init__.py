"""What a node tells of a job before anybody agrees to it: sizes that its owner publishes, and how fast it is."""
