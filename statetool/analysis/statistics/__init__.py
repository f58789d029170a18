"""Sizes, counts, ages and timers of state, from the offsets of entries. Values are not decoded."""
