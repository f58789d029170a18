"""The public API: everything that users hold. Nothing here reads bytes."""
