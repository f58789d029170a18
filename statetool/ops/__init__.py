"""What is done with whole snapshots (rescale, convert, change uids, drop, verify, copy) and with directories of them."""
