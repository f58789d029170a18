"""Tables: requests, their plans as splits, and the rows of each split."""
