"""Classes of a job from its jars."""

from __future__ import annotations

import os
from collections.abc import Iterable

from statetool.snapshot.inventory import Inventory
from statetool.types.declared import ClassSource
from statetool.types.options import name_list


def classes_of(jars: tuple[str | os.PathLike[str], ...]) -> ClassSource | None:
    """Return the classes of jars, ``None`` if there are none.

    Raises
    ------
    SnapshotNotFoundError, FormatError
        A jar does not exist, or is damaged.
    """
    if not jars:
        return None
    from statetool.java.classes.jar_classes import JarClasses  # opening a snapshot without a jar needs no class files

    return JarClasses(jars).open()


def new_job_classes(
    other_jars: Iterable[str | os.PathLike[str]] | None, new_job: Inventory | None
) -> ClassSource | None:
    """Return the classes of a new job: of its jars, or of those with which a snapshot of it was opened."""
    if other_jars is None:
        return None if new_job is None else new_job.types.source
    return classes_of(name_list("other_jars", other_jars))
