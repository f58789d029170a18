"""Advice for those who run jobs: what contradicts itself in a configuration, and what a history of checkpoints suggests."""
