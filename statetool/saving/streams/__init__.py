"""Streams of state: how entries are dealt to subtasks, kept on local disk in between, and written front to back."""
