"""What a job comes to: the result, and the folder that holds it."""
