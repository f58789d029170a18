"""Examples that Hypothesis draws."""

from __future__ import annotations

from contextlib import suppress


def draw_no_constants() -> None:
    """Let Hypothesis draw no constants of the modules that are imported: with these, the tests that ran before decide on the examples.

    There is no setting for it. Releases before 6.131 draw none.
    """
    with suppress(ImportError):
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = lambda: providers._local_constants
