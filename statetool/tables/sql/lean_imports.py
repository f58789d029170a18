"""Import of ``pyarrow.dataset`` without pandas, for the processes of commands.

pyarrow imports pandas, if it is installed, to recognize objects of pandas. For a small table, that takes a third of the time of a query.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


class _HiddenPandas:
    """A finder of modules for which pandas is not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse pandas, and leave all other modules to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def import_dataset() -> None:
    """Import ``pyarrow.dataset`` without pandas.

    pyarrow does not look for pandas again. Its ``to_pandas`` fails in this process from now on, so libraries must not call this.
    """
    if "pandas" in sys.modules:
        return
    hidden = _HiddenPandas()
    sys.meta_path.insert(0, hidden)
    try:
        importlib.import_module("pyarrow.dataset")
    finally:
        sys.meta_path.remove(hidden)
