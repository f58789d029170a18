"""Errors of tasks: the driver raises statetool's original errors.

Spark receives the error of a task as text, together with traces of the worker and of stages, and converts it to a Spark exception.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from statetool import errors
from statetool.errors import MissingDependencyError, StatetoolError
from statetool.spark.private import convert_errors, is_remote
from statetool.spark.workers import NEEDED

_OWN: Final = re.compile(
    r"^statetool\.errors\.(\w+): (.*?)(?=\n\n|\n\s+at |\n\s*SQLSTATE: |\s*\Z)", re.MULTILINE | re.DOTALL
)
_PACKAGE: Final = "run python -m statetool.jobs.package statetool.zip, and"
#: What helps if statetool (True) or one of its dependencies is missing on a Spark Connect server (True) or a worker.
_HINTS: Final = {
    (True, True): f'{_PACKAGE} spark.addArtifacts("statetool.zip", pyfile=True); statetool.register(spark). For streams, and if '
    "clients must not send files, start the server with PYTHONPATH=statetool.zip",
    (True, False): f"{_PACKAGE} pass --py-files statetool.zip, or set PYSPARK_PYTHON to a Python that has statetool",
    (False, True): "install the dependencies of statetool in the Python of the server's workers",
    (False, False): "set PYSPARK_PYTHON to a Python with the dependencies of statetool",
}  # fmt: skip
_MISSING: Final = re.compile(r"^ModuleNotFoundError: (No module named '(\w+)[^\n]*)", re.MULTILINE)


def raise_own_errors(spark: Any) -> None:
    """Make Spark raise statetool's errors from tasks as the original exceptions, from this call on; other errors are unaffected."""
    convert_errors(spark, partial(own_error, remote=is_remote(spark)))


def own_error(text: str, *, remote: bool = False) -> StatetoolError | None:
    """Return the statetool error that an error text of Spark contains; ``None`` if it contains another error.

    Parameters
    ----------
    remote
        The error is of a Spark Connect server.
    """
    if own_errors := _OWN.findall(text):
        name, message = own_errors[-1]
        kind = getattr(errors, name, StatetoolError)
        error: StatetoolError = kind(message)
        return error
    missing = _MISSING.search(text)
    if missing is None or missing[2] not in ("statetool", *NEEDED):
        return None
    where = "the Spark Connect server cannot import" if remote else "a Spark worker cannot import"
    return MissingDependencyError(
        f"{where} {missing[2]} ({missing[1]})", hint=_HINTS[missing[2] == "statetool", remote]
    )
