"""Another type for the values of a state: what changes step by step, and the conversion that does it."""
