"""Streams of state: partitioning of entries by subtask, their storage on local disk in between, and sequential writing."""
