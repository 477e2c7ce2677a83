"""Secure set union, joint pseudonyms, and the size classes of the lists that go round in both."""
