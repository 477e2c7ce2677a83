"""Transports between parties: in memory, over gRPC, and with faults on purpose."""
