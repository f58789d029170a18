"""Programs for ``spark-submit``."""
