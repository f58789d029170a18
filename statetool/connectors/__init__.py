"""What sources and sinks keep in state: splits, enumerators, transactions. Each connector is a file that knows its bytes."""
