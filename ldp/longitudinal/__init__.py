"""Reporting again and again: answers that are drawn once and kept, so that repetition does not wear privacy away."""
