"""The pages of a node's console: the data that the commands show, and the acts that they carry out, by name."""
