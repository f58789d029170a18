"""Java hash codes of keys, formulas of user classes, their proof, and the key groups that follow."""
