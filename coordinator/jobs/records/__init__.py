"""What the coordinator keeps of its jobs on disk: a folder each, what people did with it, what parties said last."""
