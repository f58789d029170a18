"""Directories of snapshots: listing, files shared by retained checkpoints, and unreferenced files."""
