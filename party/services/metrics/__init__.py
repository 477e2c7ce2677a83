"""Numbers about a node for Prometheus: how it fares, never what its data hold."""
