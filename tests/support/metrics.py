"""Metrics as the reference parser of OpenMetrics reads them."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from statetool.reporting.openmetrics.families import FAMILIES


class Metrics:
    """The samples of an OpenMetrics text.

    Raises
    ------
    ValueError
        The parser rejects the text.
    """

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        for name, family in self.families.items():
            assert (family.type, family.unit) == ("gauge", FAMILIES[name].unit)
            for sample in family.samples:
                assert sample.name == name
                assert tuple(sample.labels) == FAMILIES[name].labels

    def values(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return the samples of a family by some of its labels, all of which distinguish them."""
        samples = self.families[f"statetool_{name}"].samples if f"statetool_{name}" in self.families else []
        found = {tuple(s.labels[label] for label in labels): s.value for s in samples}
        assert len(found) == len(samples)
        return found

    def value(self, name: str, **labels: str) -> float:
        """Return the only sample of a family with these labels."""
        (value,) = (s.value for s in self.families[f"statetool_{name}"].samples if _matches(s.labels, labels))
        return float(value)


def _matches(own: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(own[name] == value for name, value in wanted.items())
