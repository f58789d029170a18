"""The snapshot classes of flink-scala-api by full name."""

from __future__ import annotations

from typing import Final

from statetool.serializers.libraries.flinkx import case_class, choices, collections, times
from statetool.serializers.libraries.flinkx.parts import PACKAGE

SNAPSHOTS: Final = {
    f"{PACKAGE}.{name}": read
    for family in (case_class, collections, choices, times)
    for name, read in family.SNAPSHOTS.items()
}
