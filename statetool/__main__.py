"""The entry point of ``python -m statetool``."""

from statetool.cli.main import main

main()
