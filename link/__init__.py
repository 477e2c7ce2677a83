"""How parties communicate: sessions, transports, identities, transcripts. Knows nothing of the protocols above it."""
