"""Families of programs: functions that decode all values of a batch into a column."""
