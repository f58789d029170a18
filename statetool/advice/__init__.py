"""Advice for those who run jobs: contradictions in a configuration, and what a history of checkpoints suggests."""
