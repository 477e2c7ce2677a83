"""The pages of a coordinator's console: what `comine job …` shows and does, for people by name."""
