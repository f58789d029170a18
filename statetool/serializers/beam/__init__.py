"""State of Apache Beam's Flink runner: Java streams that name coders, and what those coders write."""
