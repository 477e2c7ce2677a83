"""Linear models learned from gradients that users perturb themselves."""
