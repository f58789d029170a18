"""State of Apache Beam's Flink runner: Java streams that name coders, and values written by those coders."""
