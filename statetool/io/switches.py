"""Switch between private parts of other libraries and their public alternatives.

Some of statetool's speed comes from parts of Spark, numba and glibc that are not public, and that a release may change. They are used in
one module per library: :mod:`statetool.spark.private`, :mod:`statetool.kernels.core.numba_private` and :mod:`statetool.io.glibc`. Each of them
has a slower alternative that uses public parts only. ``STATETOOL_PLAIN=spark,numba,glibc`` selects it for the libraries in the list.
"""

from __future__ import annotations

import os
from typing import Final, Literal, TypeAlias, get_args

from statetool.errors import OptionError, suggest

Library: TypeAlias = Literal["spark", "numba", "glibc"]
VARIABLE: Final = "STATETOOL_PLAIN"


def is_plain(library: Library) -> bool:
    """Return True if the user allows only the public parts of a library.

    Raises
    ------
    OptionError
        The variable names another library.
    """
    names = {name.strip() for name in os.environ.get(VARIABLE, "").split(",")} - {""}
    for name in sorted(names - set(get_args(Library))):
        raise OptionError(
            f"{VARIABLE} names {name!r}, which is not a library that it knows", hint=suggest(name, get_args(Library))
        )
    return library in names
