"""Default sizes in bytes of reads of keyed state."""

from __future__ import annotations

from typing import Final

BATCH_BYTES: Final = 8 << 20
MEMORY_BYTES: Final = 32 << 20
#: Target size of a source in bytes, which one task reads.
TARGET_BYTES: Final = 64 << 20
#: Bytes of a batch per state of its operator: work per state and batch does not become more than the work per entry.
STATE_BYTES: Final = 8 << 10
