"""Types of fields from class files, compared with the recorded answers of Flink's ``TypeExtractor``: equal, or unknown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.type_extraction import extract_type
from statetool.types.type_information import TypeInformation
from tests.support.flink.typed_fields import WITH_LIBRARIES, Answer, answers, unpack
from tools.flink_jars import DEFAULT_VERSIONS

ANYTHING = "~"


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the classes that Flink was asked about, one for each language."""
    return unpack(tmp_path_factory.mktemp("typed"))


def derived(path: ClassPath, answer: Answer) -> TypeInformation:
    """Return what statetool derives in the place of an answer, for a field whose class is no POJO to it that of the class."""
    major: Literal[1, 2] = 1 if answer.version.startswith("1.") else 2
    found = extract_type(path, answer.java_class, major)
    names = [name for name, _ in found.fields]
    return found.parts[names.index(answer.field)] if answer.field in names else found


def agrees(found: TypeInformation, answer: Answer) -> bool:
    """Return True if a serializer is that of Flink, except for its parts that are unknown."""
    if answer.serializer.startswith("ERROR"):
        return not found.is_settled
    given = f"POJO {found.java_class}" if found.kind == "pojo" and not answer.field else str(open_parts(found))
    return re.fullmatch(re.escape(given).replace(re.escape(ANYTHING), ".*"), answer.serializer) is not None


def open_parts(found: TypeInformation) -> TypeInformation:
    """Return a serializer with a text that stands for anything in the place of its unknown parts."""
    if found.kind in ("unknown", "variable"):
        return TypeInformation("simple", "", ANYTHING)
    return replace(found, parts=tuple(map(open_parts, found.parts)))


@pytest.mark.parametrize("version", DEFAULT_VERSIONS)
@pytest.mark.parametrize("language", ["java", *WITH_LIBRARIES])
def test_types_are_those_of_flink_or_unknown(typed: Path, language: str, version: str) -> None:
    path = ClassPath([typed / "java", typed / language] if language != "java" else [typed / "java"])
    asked = [a for a in answers() if (a.version, a.language) == (version, language)]
    assert asked
    wrong, unsettled = [], []
    for answer in asked:
        found = derived(path, answer)
        if not agrees(found, answer):
            wrong.append(f"{answer.java_class}.{answer.field}: {answer.serializer}, not {found}")
        elif not found.is_settled:
            unsettled.append(f"{answer.java_class}.{answer.field}")
    assert wrong == [], "\n".join(wrong)
    print(len(asked), "unknown:", *unsettled, sep="\n")
