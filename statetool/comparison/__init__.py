"""What differs between two snapshots, key by key, whatever backend, form, version and parallelism they have."""
