"""New databases from entries, by the writer of the package."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from statetool.formats.rocksdb.database_writer import DatabaseWriter
from statetool.formats.rocksdb.files import DatabaseFiles
from statetool.formats.rocksdb.slices import Slice
from statetool.formats.rocksdb.table_settings import TableSettings
from statetool.formats.stream import Stream
from statetool.kernels.core.arrays import frozen
from tests.support.snapshots.native import Entries


class Output(io.FileIO):
    """A file with its size."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self.size_bytes = 0

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        self.size_bytes += len(data)
        return super().write(data)


def slice_of(entries: Sequence[tuple[bytes, bytes]], before: bytes = b"") -> Slice:
    """Entries after some other bytes."""
    sizes = np.array([(len(k), len(v)) for k, v in entries], dtype=np.int64).reshape(-1, 2)
    ends = len(before) + np.cumsum(sizes.reshape(-1)).reshape(-1, 2)
    data = before + b"".join(k + v for k, v in entries)
    return Slice(
        data=frozen(np.frombuffer(data, dtype=np.uint8)),
        key=ends[:, 0] - sizes[:, 0],
        key_end=ends[:, 0],
        value_end=ends[:, 1],
    )


def written(
    folder: Path, families: dict[str, Entries], settings: TableSettings, *, portion: int, table_bytes: int
) -> DatabaseFiles:
    folder.mkdir()
    with DatabaseWriter(
        lambda name: Output(folder / name), list(families), settings, table_bytes=table_bytes
    ) as database:
        for start in range(0, max(map(len, families.values())), portion):
            for i, entries in enumerate(families.values()):
                database.add(i, slice_of(entries[start : start + portion], before=b"x" * (start % 3)))
            database.end_tables(table_bytes // 2)
    streams = [(p.name, Stream(file=str(p), start=0, size_bytes=p.stat().st_size)) for p in sorted(folder.iterdir())]
    return DatabaseFiles(name=str(folder / "_metadata"), files=tuple(streams))


def random_entries(seed: int, count: int, most_key: int, most_value: int) -> Entries:
    """Entries of which many share the first bytes of their keys, or all of them."""
    draw = random.Random(seed)
    keys = {bytes(draw.choice(b"\x00\x01ab\xff") for _ in range(draw.randrange(most_key + 1))) for _ in range(count)}
    return [(key, draw.randbytes(draw.randrange(most_value + 1)) * draw.choice([1, 3])) for key in sorted(keys)]
