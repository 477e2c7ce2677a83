"""Context-aware privacy: values that differ in how much they must be protected, and known prior distributions."""
