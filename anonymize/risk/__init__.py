"""Risk: what somebody who knows something about a person learns from a published table."""
