"""The stored forms of keyed state, all turned into batches of entries."""
