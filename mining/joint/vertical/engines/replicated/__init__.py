"""Supports by replicated sharing: the fastest engine, where parties trust each other not to collude."""
