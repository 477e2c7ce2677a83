"""Itemsets from perturbed records that are reported to an analyst, under local privacy or through shufflers."""
