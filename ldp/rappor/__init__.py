"""RAPPOR: texts in Bloom filters, a permanent and an instantaneous randomised response, decoded by regression."""
