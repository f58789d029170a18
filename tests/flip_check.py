"""The command of :mod:`tests.support.checks.flip_check`."""

from __future__ import annotations

from tests.support.checks.flip_check import main

if __name__ == "__main__":
    main()
