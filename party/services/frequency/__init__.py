"""The frequency-estimation service: reports of clients are taken, kept, counted once, and estimated from."""
