"""New snapshots: composition, streams of state, and publishing."""
