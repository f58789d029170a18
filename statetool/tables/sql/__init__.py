"""Tables of snapshots in query engines of this process: DuckDB and Polars, without Spark and without a JVM."""
