"""Writing snapshots: publishing, streams of state, metadata. Runs on the driver and in tasks; knows neither Arrow nor Spark."""
