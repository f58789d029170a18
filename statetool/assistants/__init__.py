"""Five tools for assistants that only read the snapshots below one directory, served by the Model Context Protocol."""
