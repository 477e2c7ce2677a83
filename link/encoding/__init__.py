"""How values become bytes of messages, and messages values again: in pieces, and without needless copies."""
