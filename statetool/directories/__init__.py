"""Directories of snapshots: what is there, what retained checkpoints share, which files nobody names."""
