"""Options of JVMs that tests start."""

from __future__ import annotations

from typing import Final

#: Queries are short: the JVM's second compiler and its collector threads would take cores away from the tests.
SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
