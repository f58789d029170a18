"""The public API. No module here reads bytes."""
