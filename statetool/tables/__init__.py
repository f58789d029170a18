"""Tables: what is asked of a snapshot, planned into splits, and the rows of each split."""
