"""Advice for operators of jobs: contradictions in a configuration, and what a history of checkpoints suggests."""
