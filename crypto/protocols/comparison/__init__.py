"""Computing on what two parties share: bits, comparisons, look-ups, permutations and products of words."""
