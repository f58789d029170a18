"""Column names from compiled plans of Flink SQL."""
