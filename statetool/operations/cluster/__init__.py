"""Jobs of a Flink cluster, through its REST API: their checkpoints as snapshots, and new savepoints."""
