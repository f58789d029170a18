"""The corpora that are packed in ``tests/corpus``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.archives import unpack

__all__ = ["HERE", "unpack"]

HERE: Final = Path(__file__).parents[2]
