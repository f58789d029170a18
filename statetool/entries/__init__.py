"""Stored forms of keyed state, all converted to batches of entries."""
