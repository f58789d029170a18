"""Errors of tasks: the driver raises statetool's original errors.

Spark receives the error of a task as text, together with traces of the worker and of stages, and converts it to a Spark exception.
That conversion is the only place to intervene, because queries run in methods of Spark's DataFrames.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, Final

from statetool import errors
from statetool.errors import MissingDependencyError, StatetoolError
from statetool.spark.workers import NEEDED, is_remote

_OWN: Final = re.compile(
    r"^statetool\.errors\.(\w+): (.*?)(?=\n\n|\n\s+at |\n\s*SQLSTATE: |\s*\Z)", re.MULTILINE | re.DOTALL
)
_MISSING: Final = re.compile(r"^ModuleNotFoundError: (No module named '(\w+)[^\n]*)", re.MULTILINE)
_CONVERT: Final = "convert_exception"


def raise_own_errors(spark: Any) -> None:
    """Make Spark raise statetool's errors from tasks as the original exceptions, from this call on; other errors are unaffected."""
    if is_remote(spark):
        from pyspark.sql.connect.client import core as module
    else:
        from pyspark.errors.exceptions import captured as module
    _wrap(module)


def _wrap(module: ModuleType) -> None:
    convert: Callable[..., Exception] | None = getattr(module, _CONVERT, None)
    if convert is None or hasattr(convert, "__wrapped__"):
        return

    @wraps(convert)
    def convert_error(*args: Any, **kwargs: Any) -> Exception:
        error = convert(*args, **kwargs)
        return own_error(str(error)) or error

    setattr(module, _CONVERT, convert_error)


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
        f"a worker of Spark's could not start: {missing[1]}",
        hint="its Python needs the dependencies of statetool (PYSPARK_PYTHON says which it is), and --py-files the package as a .zip",
    )
