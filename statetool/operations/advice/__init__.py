"""Advice for operating jobs: conflicts in a configuration, and suggestions from a history of checkpoints."""
