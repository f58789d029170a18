"""Results of check, verify and diff in notebooks: findings with the commands to run, and pandas frames."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import statetool as st
from statetool.html.markup import html
from statetool.html.style import STYLE
from statetool.reporting.verdicts.check import check_findings
from statetool.reporting.verdicts.finding import Finding
from statetool.reporting.verdicts.markup import MOST_OPEN, finding_blocks
from statetool.reporting.verdicts.verify import verify_findings
from tests.support.zoo import ZOO


@pytest.fixture(scope="module")
def pair(corpus: Path) -> tuple[st.Savepoint, st.Savepoint]:
    first, second = (
        st.load(str(corpus / c / "snapshot")) for c in ("v2_3_0-hashmap-canonical", "v2_3_0-rocksdb-native")
    )
    return first, second


def test_a_check_shows_its_findings_and_verdicts(pair: tuple[st.Savepoint, st.Savepoint]) -> None:
    check = st.check(*pair)
    shown = check._repr_html_()
    assert shown is not None
    findings = check_findings(check)
    assert shown.count('<div class="finding ') == len(findings.findings) > 0
    assert all(html(f.what) in shown for f in findings.findings)
    assert html(findings.summary) in shown
    assert f"statetool rescale {pair[0].path} NEW --uid by-tuple=300" in shown
    frame = check.to_pandas()
    assert len(frame) == sum(1 + len(o.states) for o in check.operators)
    assert set(frame["verdict"]) == {"fully", "unknown", "not"}
    assert frame[frame["state"].isna()]["operator"].tolist() == [o.uid for o in check.operators]
    assert pickle.loads(pickle.dumps(check)) == copy.deepcopy(check) == check


def test_a_verification_shows_its_problems(corpus: Path) -> None:
    path = str(corpus / "v2_3_0-hashmap-native" / "snapshot")
    verification = st.verify(path, deep=True)
    shown = verification._repr_html_()
    assert shown is not None
    assert verification.problems
    assert shown.count('<div class="finding ') == len(verification.problems)
    assert html(verify_findings(verification).summary) in shown
    assert f"statetool verify {path} --allow-unread" in shown
    frame = verification.to_pandas()
    assert frame["problem"].tolist() == [p.problem for p in verification.problems]
    assert str(frame["offset"].dtype) == "Int64"


def test_a_comparison_with_a_path_shows_counts_and_first_differences(pair: tuple[st.Savepoint, st.Savepoint]) -> None:
    before, after = pair
    comparison = before.diff(after.path)
    shown = comparison._repr_html_()
    changed = [c for c in comparison.summary() if c.added + c.removed + c.changed]
    assert changed
    assert all(html(f"operator {c.operator} › state {c.state}") in shown for c in changed)
    first = comparison.first(1).to_pylist()[0]
    assert html(first["after"]) in shown
    assert comparison.to_pandas()["key"].tolist() == comparison.to_arrow()["key"].to_pylist()
    assert "No differences" in before.diff(before, operators=["timers"])._repr_html_()


def test_names_in_findings_are_escaped_and_many_are_collapsed() -> None:
    hostile = "<img src=x>"
    findings = [
        Finding(
            severity="error",
            where=(hostile, str(n)),
            what=hostile,
            why=hostile,
            details=((hostile, hostile),),
            remedy=hostile,
            command=hostile,
        )
        for n in range(MOST_OPEN + 2)
    ]
    shown = finding_blocks(findings)
    assert "<img" not in shown
    assert shown.count(html(hostile)) == 7 * len(findings)
    opened, _, collapsed = shown.partition("<details>")
    assert opened.count('class="finding error"') == MOST_OPEN
    assert collapsed.count('class="finding error"') == 2
    assert "2 more findings" in collapsed


def test_the_style_colors_only_what_is_ours() -> None:
    selectors = [rule.partition("{")[0] for rule in STYLE.split("}") if rule.strip()]
    assert all(part.strip().startswith(".statetool") for selector in selectors for part in selector.split(","))
    assert "url(" not in STYLE
    assert STYLE in (st.load(ZOO)._repr_html_())


def test_states_with_the_same_finding_share_one(corpus: Path) -> None:
    """A class that Kryo writes is one finding, however many states have it."""
    check = st.check(str(corpus / "v1_20_5-rocksdb-canonical" / "snapshot"), flink_version="2.3.0")
    found = [f for f in check_findings(check).findings if "Kryo 2" in f.what]
    assert len({f.what for f in found}) == len(found) > 4
    (uuids,) = [f for f in found if "UUID" in f.what]
    assert len(uuids.where) == 1
    assert uuids.where[0].startswith("2 states (")
    assert ": uuid" in uuids.where[0]
    assert ": order" in uuids.where[0]
    assert uuids.why == "Flink does not restore these states."
