"""Oblivious transfer: base transfers, their extension to millions, and what is transferred with them."""
