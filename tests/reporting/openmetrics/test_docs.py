"""The page and the dashboard name exactly the metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from statetool.reporting.openmetrics.families import FAMILIES

DOCS = Path(__file__).parents[3] / "docs" / "operations"
_NAME = re.compile(r"\bstatetool_\w+")


def test_the_page_lists_each_metric() -> None:
    rows = re.findall(r"^\| `(statetool_\w+)` \| (.*?) ?\| (.*) \|$", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    common = {"job_id", "job_name", "operator", "operator_name"}
    expected = [
        (name, ", ".join(f"`{label}`" for label in family.labels if label not in common), family.help)
        for name, family in FAMILIES.items()
    ]
    assert rows == expected
    assert set(_NAME.findall((DOCS / "metrics.md").read_text())) - {"statetool_checkpoint"} == FAMILIES.keys()


def test_the_dashboard_queries_metrics_that_exist() -> None:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    panels: list[dict[str, Any]] = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        for target in panel["targets"]:
            named = _NAME.findall(target["expr"])
            assert named
            assert {*named} <= FAMILIES.keys()
            labels = {label for name in named for label in FAMILIES[name].labels}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    (job,) = (v for v in dashboard["templating"]["list"] if v["name"] == "job_id")
    assert {*_NAME.findall(job["query"]["query"])} <= FAMILIES.keys()
