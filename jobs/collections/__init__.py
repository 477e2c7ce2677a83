"""What a collection of the frequency service is, and a route through shufflers."""
