"""Items from noisy counts of trusted parties and perturbed records of the others."""
