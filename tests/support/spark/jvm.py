"""Options of JVMs that tests start."""

from __future__ import annotations

from typing import Final

#: Queries are short: the JVM's second compiler and its collector threads would take cores away from the tests. Each time the classes outgrow
#: a limit, the JVM collects everything.
SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"
