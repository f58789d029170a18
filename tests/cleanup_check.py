"""The command of :mod:`tests.support.checks.cleanup_check`."""

from __future__ import annotations

import sys

from tests.support.checks.cleanup_check import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
