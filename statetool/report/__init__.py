"""One HTML page of what is known of a snapshot, without a network, a script or another package."""
