"""Reads and writes in a Spark session.

Raises :class:`~statetool.errors.MissingDependencyError` on import if PySpark is not installed.
"""

from importlib.util import find_spec

from statetool.errors import MissingDependencyError

if find_spec("pyspark") is None:
    raise MissingDependencyError("this needs PySpark", hint="pip install 'statetool[spark]'")
