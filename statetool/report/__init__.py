"""One page of what is known of a snapshot: structure, charts and style, without a network, a script or another package."""
