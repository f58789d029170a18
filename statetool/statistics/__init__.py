"""Sizes, counts, ages and timers of state, from the positions of entries. Values are not decoded."""
