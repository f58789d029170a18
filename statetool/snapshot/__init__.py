"""What a snapshot contains: operators, their states and types, and where each stream lies. Nothing is decoded beyond headers."""
