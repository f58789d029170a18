"""Connectors: state of sources and sinks (splits, enumerators, transactions). Each connector is a file that decodes its bytes."""
