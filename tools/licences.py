"""Licences of the dependencies, by extra, and the bill of materials of the wheel (CycloneDX).

``python -m tools.licences`` reads the metadata of all installed dependencies, direct and indirect, and writes ``tools/licences.tsv``. Run it
in an environment with all extras. With ``--check`` it only compares, and fails if one has another licence or none is known.
"""

from __future__ import annotations

import csv
import importlib.metadata
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import statetool

ROOT: Final = Path(__file__).parents[1]
TABLE: Final = ROOT / "tools" / "licences.tsv"
SBOM: Final = ROOT / "sbom" / "statetool.cdx.json"
CORE: Final = "core"
#: Extras for contributors, which no user installs.
INTERNAL: Final = frozenset({"all", "docs", "test"})
#: Names of licences in free text and in classifiers, by their SPDX identifiers.
_SPDX: Final = {
    "apache": "Apache-2.0", "mit": "MIT", "3-clause": "BSD-3-Clause", "new bsd": "BSD-3-Clause", "2-clause": "BSD-2-Clause", "bsd": "BSD-3-Clause",
    "python software foundation": "PSF-2.0", "psf": "PSF-2.0", "isc": "ISC", "mozilla public license 2.0": "MPL-2.0", "mpl": "MPL-2.0",
    "unlicense": "Unlicense", "historical permission notice": "HPND", "zope": "ZPL-2.1",
}  # fmt: skip


def extras() -> dict[str, list[Requirement]]:
    """Return the direct requirements by extra, without those that other extras of statetool bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    listed = {CORE: project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: [r for r in map(Requirement, texts) if r.name != "statetool"]
        for extra, texts in listed.items()
        if extra not in INTERNAL
    }


def licence_of(metadata: Mapping[str, Any]) -> str:
    """Return the licence that the metadata of a package declares, ``""`` if it has none that is known."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [c for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]  # type: ignore[attr-defined]
    for text in [*classifiers, str(metadata.get("License") or "")[:200]]:
        for words, identifier in _SPDX.items():
            if re.search(rf"\b{words}\b", text.lower()):
                return identifier
    return ""


def installed(requirements: list[Requirement]) -> dict[str, str]:
    """Return the licences of the requirements and of all that they require here, by name."""
    todo = [(r.name, tuple(r.extras)) for r in requirements]
    found: dict[str, str] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[canonicalize_name(name)] = licence_of(metadata)  # type: ignore[arg-type]
        for text in metadata.get_all("Requires-Dist") or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in ("", *wanted)):
                todo.append((inner.name, tuple(inner.extras)))
    return found


@cache
def table() -> dict[str, dict[str, str]]:
    """Return the licences of ``tools/licences.tsv``, by extra and package."""
    found: dict[str, dict[str, str]] = {}
    with TABLE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            found.setdefault(row["extra"], {})[row["package"]] = row["licence"]
    return found


def licence_table() -> str:
    """Return Markdown: the packages of each extra, those that it names first, by licence."""
    lines = ["| extra | packages that it names | what these bring |", "|---|---|---|"]
    core = table()[CORE]
    for extra, requirements in extras().items():
        names = [canonicalize_name(r.name) for r in requirements]
        rest = {
            n: text for n, text in table().get(extra, {}).items() if n not in names and (extra == CORE or n not in core)
        }
        named = ", ".join(f"{n} ({table()[extra][n]})" for n in names)
        lines.append(
            f"| {extra} | {named} | {', '.join(f'{n} ({text})' for n, text in sorted(rest.items())) or 'nothing'} |"
        )
    return "\n".join(lines)


def sbom() -> str:
    """Return the bill of materials of the wheel. It contains no code of others: components are the packages that pip installs for it."""
    components = []
    for extra, requirements in extras().items():
        for requirement in requirements:
            name = canonicalize_name(requirement.name)
            components.append(
                {
                    "type": "library",
                    "bom-ref": f"{extra}/{name}",
                    "name": name,
                    "scope": "required" if extra == CORE else "optional",
                    "purl": f"pkg:pypi/{name}",
                    "licenses": [{"expression": table()[extra][name]}],
                    "properties": [
                        {"name": "statetool:extra", "value": extra},
                        {"name": "statetool:versions", "value": str(requirement.specifier)},
                    ],
                }
            )
    own = {"type": "library", "bom-ref": "statetool", "name": "statetool", "version": statetool.__version__,
           "purl": f"pkg:pypi/statetool@{statetool.__version__}", "licenses": [{"expression": "Apache-2.0"}]}  # fmt: skip
    document = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": own}, "components": components,
        "dependencies": [{"ref": "statetool", "dependsOn": [c["bom-ref"] for c in components if c["scope"] == "required"]}],
    }  # fmt: skip
    return json.dumps(document, indent=2) + "\n"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield extra, package and licence of what is installed."""
    for extra, requirements in extras().items():
        yield from ((extra, name, text) for name, text in sorted(installed(requirements).items()))


def main(arguments: list[str]) -> int:
    """Run the command line."""
    found = list(rows())
    wrong = [f"{extra}: {name} has no known licence" for extra, name, text in found if not text]
    if "--check" in arguments:
        wrong += [
            f"{e}: {n} is {t}, not {table().get(e, {}).get(n)}" for e, n, t in found if table().get(e, {}).get(n) != t
        ]
    else:
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerows([("extra", "package", "licence"), *found])
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
