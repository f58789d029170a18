"""Keyed state of an operator computed from all of its old state: other joins, and other Top-N."""
