"""Tests of what is done to whole snapshots."""
