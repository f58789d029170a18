"""Contents of a snapshot: operators, their states and types, and the location of each stream. Only headers are decoded."""
