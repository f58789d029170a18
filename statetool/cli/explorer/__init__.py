"""An explorer of snapshots in the browser: pages rendered on the server, without scripts, and look-ups as JSON."""
