"""The documents become one site in which every link has a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.site import build, dead_links

#: Defined and inherited methods.
API = (
    "load",
    "uids_in",
    "Savepoint.diff",
    "Savepoint.sources",
    "Operator.to_pandas",
    "Operator.windows",
    "SavepointWriter.write",
)


@pytest.mark.full
def test_the_site_is_built_and_has_no_dead_link(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build(site)
    assert dead_links(site) == []
    assert "<h1" in (site / "index.html").read_text()
    reference = (site / "api" / "statetool.html").read_text()
    assert all(f'id="{name}"' in reference for name in API)
    assert "data:image/png" in (site / "notebooks" / "what-is-large.html").read_text()


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html">b</a><a href="#top">t</a><a href="#no">n</a>')
    (tmp_path / "c.html").write_text('<a href="a.html#top">fine</a><a href="https://flink.apache.org">far</a>')
    assert dead_links(tmp_path) == ["a.html: b.html", "a.html: #no"]
