"""Mining of perturbed records: every record answers one question about itself, behind noise of its own."""
