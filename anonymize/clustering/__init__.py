"""Microaggregation: classes of near records, published as their centres: MDAV, MAA-SLIE, GPKC."""
