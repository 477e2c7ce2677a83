"""The kinds of jobs, a package for each: what a job of it means, runs, discloses, costs and finds."""
