"""New snapshots: what they are made of, how their streams are written, and how they are published."""
