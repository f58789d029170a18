"""The steps of a restore, in Flink's order: from the path of the snapshot to the first completed checkpoint."""
