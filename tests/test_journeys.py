"""Journeys of users that no other test makes, in the environment of the tests (``python -m tests.journeys`` makes fresh ones)."""

from __future__ import annotations

import pytest

from tests.journeys import __main__ as journeys

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", ["running-job", "upgrade"])
def test_a_job_goes_on_with_what_was_written(name: str) -> None:
    journeys.travel(journeys.JOURNEYS[name], here=True)


def test_checkpoints_are_added_to_lakes(lake_libraries: None) -> None:
    journeys.travel(journeys.JOURNEYS["lake"], here=True)
