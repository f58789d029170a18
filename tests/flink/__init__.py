"""Restores in real Flink: Flink restores what statetool writes, and the values that it reports are compared one by one."""
