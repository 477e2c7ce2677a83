"""What a job is: its specification, its disclosure statement, its tasks and its result.

Both the coordinator (which plans and simulates jobs) and the party (which checks and runs them) build on this package.
"""
