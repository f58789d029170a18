"""Two writers of one target, in every order of their requests, with kills and failures: the real code on a model of a store."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from statetool.saving.publish import Publication
from tests.support.store_model import TARGET, Explorer, Search, State, names_in


def writer(name: str, take_over: bool) -> Callable[[], None]:
    """Return a function that writes a snapshot of one file."""

    def write() -> None:
        with warnings.catch_warnings(), Publication(TARGET, take_over=take_over) as publication:
            warnings.simplefilter("ignore")
            with publication.staging.create("keyed") as f:
                f.write(name.encode())
            publication.commit(f.staged.name.encode(), [f.staged])

    return write


def explore(patch: pytest.MonkeyPatch, *take_over: bool, recover: bool = False, **search: Any) -> Explorer:
    """Check every state: ``_metadata`` names a complete file, and exists once a writer returned."""
    writers = {name: writer(name, over) for name, over in zip("ABC", (*take_over, True), strict=False)}
    last = writers.pop("ABC"[len(take_over)])
    explorer = Explorer(Search(writers=writers, **search), patch)
    outcomes, contents = set(), set()

    def check(state: State) -> None:
        names = names_in(state)
        published = names.get("_metadata")
        if published is not None:
            assert names.get(published.decode()) == published[:1], ("half a savepoint", state)
        results = {explorer.outcome(state, name) for name in explorer.names}
        outcomes.update(results)
        for name in explorer.names:
            if explorer.outcome(state, name) == "returned":
                assert published is not None, ("lost success", state)
                assert published[:1].decode() == name, ("lost success", state)
        if published is None and not state.late and "goes on" not in results:
            contents.add(state.objects)

    explorer.run(check)
    assert "returned" in outcomes
    if recover:
        for objects in contents:
            again = Explorer(Search(writers={"Z": last}, same_host=False), patch)
            ends: list[State] = []
            again.run(ends.append, objects)
            assert again.outcome(ends[-1], "Z") == "returned", objects
            assert len(names_in(ends[-1])) == 2, objects
    return explorer


BOTH_ON_ONE_HOST: dict[str, Any] = {"same_host": True}
ON_OTHER_HOSTS: dict[str, Any] = {"same_host": False}
A_IS_OLD: dict[str, Any] = {"same_host": False, "ages": {"A": 25}}


@pytest.mark.parametrize(
    ("take_over", "search"),
    [
        pytest.param((False, False), {**BOTH_ON_ONE_HOST, "switches": 1}, id="one host"),
        pytest.param((False, True), {**BOTH_ON_ONE_HOST, "switches": 1}, id="one host, B takes over"),
        pytest.param((False, False), {**ON_OTHER_HOSTS, "switches": 2}, id="two hosts"),
        pytest.param((False, False), {**A_IS_OLD, "switches": 2}, id="two hosts, A is old"),
        pytest.param((True, True), {**ON_OTHER_HOSTS, "switches": 2}, id="two hosts, both take over"),
        pytest.param((False, False), BOTH_ON_ONE_HOST, id="one host, any order", marks=pytest.mark.full),
        pytest.param((False, False), ON_OTHER_HOSTS, id="two hosts, any order", marks=pytest.mark.full),
        pytest.param((False, False), A_IS_OLD, id="two hosts, A is old, any order", marks=pytest.mark.full),
        pytest.param((True, True), {**BOTH_ON_ONE_HOST, "switches": 2}, id="both take over", marks=pytest.mark.full),
    ],
)
def test_no_order_of_requests_leaves_half_a_savepoint(
    take_over: tuple[bool, ...], search: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explore(monkeypatch, *take_over, recover=True, **search).states > 1000


@pytest.mark.parametrize(
    ("take_over", "search"),
    [
        pytest.param((False,), {**BOTH_ON_ONE_HOST, "failures": 1}, id="one writer"),
        pytest.param((False, True), {**ON_OTHER_HOSTS, "failures": 1, "switches": 1}, id="B takes over"),
        pytest.param((False,), {**BOTH_ON_ONE_HOST, "failures": 2}, id="one writer, twice", marks=pytest.mark.full),
        pytest.param(
            (False, False),
            {**BOTH_ON_ONE_HOST, "failures": 1, "switches": 1},
            id="two writers",
            marks=pytest.mark.full,
        ),
    ],
)
def test_no_failure_of_a_request_leaves_half_a_savepoint(
    take_over: tuple[bool, ...], search: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the store acts, after it acted, or with a delay; errors and interrupts."""
    assert explore(monkeypatch, *take_over, **search).states > 100


def test_the_search_finds_what_a_wrong_answer_about_a_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="half a savepoint"):
        explore(monkeypatch, False, False, **BOTH_ON_ONE_HOST, wrong_deaths=True)


def test_the_search_finds_an_early_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a write that may still publish are removed before this write has published."""
    take_turn = Publication._take_turn

    def hasty(self: Publication) -> None:
        take_turn(self)
        for write_id in self._taken:
            self._remove_staged(write_id)

    monkeypatch.setattr(Publication, "_take_turn", hasty)
    with pytest.raises(AssertionError, match="half a savepoint"):
        explore(monkeypatch, False, True, **ON_OTHER_HOSTS)


def test_the_search_finds_an_abort_that_does_not_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    def finalize(self: Publication, error: BaseException | None) -> str:
        self._stage = "open"
        return "open"

    monkeypatch.setattr(Publication, "_settle", finalize)
    with pytest.raises(AssertionError, match="half a savepoint"):
        explore(monkeypatch, False, **BOTH_ON_ONE_HOST, failures=1)
