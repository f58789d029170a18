"""The zoo: a small real savepoint (Flink 2.3.0, RocksDB backend, canonical, compressed) with an operator for each kind of state."""

from __future__ import annotations

from typing import Final

from tests.support.corpora.archives import HERE

ZOO: Final = str(HERE / "corpus" / "zoo" / "savepoint")
