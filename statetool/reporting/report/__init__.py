"""A self-contained HTML page about a snapshot, without network access, scripts or additional packages."""
