"""Settings of DuckDB connections. What a query means must not depend on the time zone or the language of the machine."""

from __future__ import annotations

from typing import Any, Final

from statetool.errors import MissingDependencyError

#: DuckDB takes both from the machine: the zone from ``TZ``, and up to 1.5 the calendar from the language, such as Thai years.
_SETTINGS: Final = ("SET TimeZone = 'UTC'", "SET Calendar = 'gregorian'")


def use_utc(connection: Any) -> None:
    """Make a connection read and show times in UTC, by the Gregorian calendar.

    Raises
    ------
    MissingDependencyError
        DuckDB was built without time zones.
    """
    import duckdb

    try:
        for setting in _SETTINGS:
            connection.execute(setting)
    except duckdb.Error as error:
        raise MissingDependencyError(
            f"DuckDB {duckdb.__version__} has no time zones: {str(error).splitlines()[0]}",
            hint="install the wheel of PyPI, which has the extension icu: pip install 'statetool[sql]'",
        ) from error
