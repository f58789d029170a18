"""Integrity checks of a snapshot, from the handles of its metadata to the last byte of every value."""
