"""Unions: by prefixes of names, under encryption of joint pseudonyms; and the size classes of lists."""
