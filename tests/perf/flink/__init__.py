"""Programs with which Flink itself writes and reads a large state, for comparison."""
