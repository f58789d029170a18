"""State of snapshots as metrics in the OpenMetrics text format, for Prometheus and others."""
