"""Whether a snapshot is whole, from the handles of its metadata to the last byte of every value."""
