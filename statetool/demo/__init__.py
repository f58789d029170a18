"""A small real savepoint (Flink 2.3.0, RocksDB backend, canonical, compressed) and a tour of it."""

from __future__ import annotations

import os

SAVEPOINT = os.path.join(os.path.dirname(__file__), "savepoint")
