"""Java class files as data: their fields, types, superclasses and enum constants. Needs no JVM and runs nothing."""
