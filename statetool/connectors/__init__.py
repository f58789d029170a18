"""What sources and sinks keep in state: splits, enumerators, transactions. A file a connector, which knows its bytes."""
