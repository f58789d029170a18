"""Pauses of Python's garbage collector while many objects are created that all stay in use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector. It would look at all objects again and again, which takes as long as creating them.

    Objects without references are freed at once as always. Only those that refer to each other wait for the next collection.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                # Both together move all objects to the oldest generation. Otherwise each younger one would be collected with them first.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
