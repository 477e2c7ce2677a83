"""What a party agrees to: its rules, its budget, and the people who decide."""
