"""Java hash codes of keys, formulas for ``hashCode()`` of user classes with their proof, and key groups."""
