"""What users say of types: Flink types by name, states, and classes that snapshots do not describe."""
