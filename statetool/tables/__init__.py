"""Tables: requests, planned into splits, and the rows of each split."""
