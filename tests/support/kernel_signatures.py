"""Record the argument types that kernels are compiled ahead of time for: ``python -m tests.support.kernel_signatures``.

It runs the tests that call kernels both compiled and uncompiled, and adds what they were called with to ``statetool/kernels/signatures.txt``.
Lines of kernels that no longer exist are removed.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from statetool.kernels import ahead
from statetool.kernels.core.jit import Kernel

FILE: Final = Path(ahead.__file__).with_name("signatures.txt")
#: The signatures of calls in this process.
CALLED: Final[set[str]] = set()


def main() -> None:
    """Run the command line."""
    tests = Path(__file__).parents[1] / "kernels" / "test_jit.py"
    # New signatures are failures, which is how they are found.
    pytest.main(["--full", "-n", "0", "-q", str(tests), "-k", "uncompiled_kernels_do_the_same"])
    from tests.support import kernel_signatures  # as the tests import this module

    known = {line for line in ahead.SIGNATURES if _is_kernel(line)}
    lines = sorted(known | kernel_signatures.CALLED)
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(lines)} signatures, {len(set(lines) - known)} new, {len(ahead.SIGNATURES) - len(known)} removed")


def _is_kernel(line: str) -> bool:
    module, _, name = line.split()[0].rpartition(".")
    try:
        return isinstance(getattr(import_module(f"statetool.kernels.{module}"), name, None), Kernel)
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
