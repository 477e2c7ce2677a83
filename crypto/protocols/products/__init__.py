"""Products of private columns: by oblivious transfer, with a dealer, and by replicated sharing."""
