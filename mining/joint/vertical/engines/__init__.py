"""How supports of itemsets that span parties are computed: engines behind one interface, by name in `registry`."""
