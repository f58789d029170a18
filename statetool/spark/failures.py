"""Errors of tasks: the driver raises statetool's original errors.

Spark receives the error of a task as text, together with traces of the worker and of stages, and converts it to a Spark exception.
"""

from __future__ import annotations

import re
from typing import Any, Final

from statetool import errors
from statetool.errors import MissingDependencyError, StatetoolError
from statetool.spark.private import convert_errors
from statetool.spark.workers import NEEDED

_OWN: Final = re.compile(
    r"^statetool\.errors\.(\w+): (.*?)(?=\n\n|\n\s+at |\n\s*SQLSTATE: |\s*\Z)", re.MULTILINE | re.DOTALL
)
_MISSING: Final = re.compile(r"^ModuleNotFoundError: (No module named '(\w+)[^\n]*)", re.MULTILINE)


def raise_own_errors(spark: Any) -> None:
    """Make Spark raise statetool's errors from tasks as the original exceptions, from this call on; other errors are unaffected."""
    convert_errors(spark, own_error)


def own_error(text: str) -> StatetoolError | None:
    """Return the statetool error that an error text of Spark contains; ``None`` if it contains another error."""
    if own_errors := _OWN.findall(text):
        name, message = own_errors[-1]
        kind = getattr(errors, name, StatetoolError)
        error: StatetoolError = kind(message)
        return error
    missing = _MISSING.search(text)
    if missing is None or missing[2] not in ("statetool", *NEEDED):
        return None
    return MissingDependencyError(
        f"a Spark worker could not start: {missing[1]}",
        hint="set PYSPARK_PYTHON to a Python with the dependencies of statetool, and pass statetool as a .zip with --py-files",
    )
