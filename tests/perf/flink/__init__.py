"""What Flink itself needs to write and to read a large state, to measure ours against."""
