"""Joint jobs at a party: from a proposal to a signed release."""
