"""Streams of new snapshots: inside the metadata while they are small, in a staged file of their own once they are larger."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from types import TracebackType
from typing import Final

from statetool.formats.metadata.handles import ByteStreamHandle, RelativeFileHandle
from statetool.write.publish import StagedFile, StagedOutput, Staging

#: Flink keeps smaller states inside the metadata (``state.storage.fs.memory-threshold``).
INLINE_BYTES: Final = 20 << 10


class SmallOrStaged:
    """One stream being written; a block that fails removes what was staged."""

    def __init__(self, staging: Staging, label: str) -> None:
        self._staging = staging
        self._label = label
        self._stack = ExitStack()
        self._small = bytearray()
        self._file: StagedOutput | None = None
        self.size_bytes = 0

    def __enter__(self) -> SmallOrStaged:
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self.size_bytes += len(data)
        if self._file is None:
            if self.size_bytes <= INLINE_BYTES:
                self._small += data
                return
            self._file = self._stack.enter_context(self._staging.create(self._label))
            self._file.write(self._small)
        self._file.write(data)

    @property
    def staged(self) -> StagedFile | None:
        """The complete file, after the block; ``None`` where the stream is small."""
        return None if self._file is None else self._file.staged

    @property
    def small(self) -> bytes:
        """The bytes of a small stream."""
        return bytes(self._small)

    def handle(self) -> ByteStreamHandle | RelativeFileHandle:
        """Return the handle that names the stream, after the block."""
        if self.staged is None:
            return ByteStreamHandle(name=str(uuid.uuid4()), data=self.small)
        return RelativeFileHandle(path=self.staged.name, size_bytes=self.staged.size_bytes)
