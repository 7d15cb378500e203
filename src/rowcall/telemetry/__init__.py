"""What a running service tells of itself: logs, metrics, traces."""
