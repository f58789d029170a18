"""Keyed state streams."""
