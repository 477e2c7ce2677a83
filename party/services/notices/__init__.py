"""Tells the people who run a node, by a command or a webhook of their own, what awaits them."""
