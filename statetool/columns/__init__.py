"""Conversion of entries to Arrow columns and back, by programs compiled from serializers."""
