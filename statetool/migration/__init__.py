"""Migration of a state's values to another type: the steps, and the conversion that performs them."""
