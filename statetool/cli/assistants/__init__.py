"""Five read-only tools for assistants, limited to the snapshots below one directory and served by the Model Context Protocol."""
