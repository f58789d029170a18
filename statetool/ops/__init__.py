"""What is done to whole snapshots: rescale, convert, change uids, drop."""
