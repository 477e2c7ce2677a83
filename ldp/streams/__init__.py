"""Budgets over time, and statistics that are released again and again (w-event local differential privacy)."""
