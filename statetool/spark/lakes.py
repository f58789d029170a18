"""Packages with which a session writes tables of Delta and Iceberg, and errors of a session without them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from statetool.errors import MissingDependencyError

#: Packages by format and release of PySpark, as they were run. No release of either is for PySpark 4.3, and none of Iceberg for 4.2.
PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "delta": {
        "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
        "4.1": "io.delta:delta-spark_2.13:4.3.1",
        "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0",
    },
    "iceberg": {
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    },
}
#: Errors of the JVM if a package was compiled for another release of Spark.
_OTHER_RELEASE: Final = re.compile(
    "NoSuchMethodError|NoSuchFieldError|NoClassDefFoundError|AbstractMethodError|IncompatibleClassChangeError"
)


def lake_error(error: Exception, provider: str) -> MissingDependencyError | None:
    """Return the error of a session without a format, or with that of another release of Spark; ``None`` if Spark's error is another one."""
    text = str(error)
    if "DATA_SOURCE_NOT_FOUND" in text:
        message = f"this session has no {provider}"
    elif _OTHER_RELEASE.search(text):
        message = f"the package of {provider} in this session is for another release of Spark"
    else:
        return None
    from pyspark import __version__

    release = ".".join(__version__.split(".")[:2])
    packages = PACKAGES[provider]
    if release in packages:
        start = f"start it with --packages {packages[release]}"
    else:
        newest = max(packages)
        start = f"there is none for PySpark {release}: use PySpark {newest} with --packages {packages[newest]}"
    return MissingDependencyError(
        message,
        hint=f"{start}, and the catalog and extension that its pages name, "
        f"or write without Spark by statetool export --format {provider}, with the extra statetool[{provider}]",
    )
