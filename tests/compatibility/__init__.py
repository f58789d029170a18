"""Tests of compatibility checks."""
