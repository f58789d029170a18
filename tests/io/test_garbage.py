"""Pauses of the garbage collector."""

from __future__ import annotations

import gc

import pytest

from statetool.io.garbage import collector_paused


def _fail() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("stop")


def test_the_collector_continues_after_an_error() -> None:
    with pytest.raises(ValueError, match="stop"):
        _fail()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    with collector_paused():
        pass
    assert gc.get_freeze_count() > 0  # fewer than before, if other tests' objects are freed meanwhile


def test_objects_that_refer_to_each_other_are_collected_later() -> None:
    class Node:
        other: Node

    gc.freeze()  # otherwise the objects of all other tests would be looked at
    with collector_paused():
        node = Node()
        node.other = node
        del node
    assert gc.collect() > 0
