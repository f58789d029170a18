"""Names of columns from compiled plans of Flink SQL."""
