"""Serializer cases written by Flink 1.15.4, 1.17.2, 1.20.5 and 2.3.0 (``generated.tar.xz``), and those of Avro, written by the
flink-avro of 1.14 on 1.17.2 and 2.3.0 (``avro/cases.tar.xz``).

Each release wrote every case. Cases whose bytes and expectations are equal in several releases are stored once.
"""

from __future__ import annotations

import functools
import json
import tarfile
from typing import Final

from tests.support.checks.serializer_check import Case, described_case
from tests.support.corpora.archives import HERE

ARCHIVES: Final = (
    HERE / "serializers" / "generated.tar.xz",
    HERE / "serializers" / "avro" / "cases.tar.xz",
)


@functools.cache
def generated() -> dict[str, tuple[Case, ...]]:
    """Return the distinct cases by name."""
    files: dict[tuple[str, str], dict[str, bytes]] = {}
    for archive in ARCHIVES:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is not None and member.name.count("/") == 3:
                    release, _, case, file = member.name.split("/")
                    files.setdefault((case, release.removeprefix("generated-")), {})[file] = content.read()
    by_name: dict[str, dict[tuple[bytes, bytes, str], Case]] = {}
    for (name, release), contents in sorted(files.items()):
        expected = json.loads(contents["expected.json"])
        snapshot, data = contents["serializer-snapshot"], contents["test-data"]
        identity = (snapshot, data, json.dumps(expected["values"]))
        by_name.setdefault(name, {}).setdefault(identity, described_case(f"{name}-{release}", snapshot, data, expected))
    return {name: tuple(cases.values()) for name, cases in by_name.items()}
