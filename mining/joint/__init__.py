"""Mining over the rows or columns of several parties, in terms of protocol calls and data that never leaves a party."""
