"""What assistants may ask of the snapshots below one directory: five tools that only read, served by the Model Context Protocol."""
