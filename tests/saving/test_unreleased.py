"""Snapshots of a release of Flink that does not exist yet: read with a warning, written only for a release that the user names.

The snapshots are made here from bytes of Flink 2.3, by the metadata format of Flink's development branch.
"""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import statetool
from statetool.errors import OptionError
from statetool.formats.metadata import SnapshotMetadata, parse_metadata
from statetool.formats.metadata.model import NEWEST_RELEASED as NEWEST
from statetool.formats.metadata.writer import write_metadata
from statetool.saving.versions import READS, RELEASES, UNRELEASED, parse_release
from tests.support.zoo import ZOO

OPERATOR = "by-short"


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a snapshot as the next release writes it: a subtask has the state of an older checkpoint."""
    folder = tmp_path_factory.mktemp("newer") / "chk-42"
    shutil.copytree(ZOO, folder)
    metadata = read(ZOO)
    first, *others = metadata.operators
    reused = (replace(first.subtasks[0], ref_checkpoint_id=41), *first.subtasks[1:])
    operators = (replace(first, subtasks=reused), *others)
    (folder / "_metadata").write_bytes(write_metadata(replace(metadata, version=NEWEST + 1, operators=operators)))
    return str(folder)


def read(folder: str | Path) -> SnapshotMetadata:
    return parse_metadata((Path(folder) / "_metadata").read_bytes())


def test_the_tables_of_releases_agree() -> None:
    assert not RELEASES.keys() & UNRELEASED.keys()
    assert max(version for version, _ in RELEASES.values()) == NEWEST
    assert list(READS) == sorted(READS, key=lambda release: tuple(map(int, release.split("."))))
    assert {READS[release][0] for release in UNRELEASED} == {NEWEST + 1}
    # What is written for it has a version that released Flink reads.
    assert {parse_release(release).metadata_version for release in UNRELEASED} == {NEWEST}


def test_it_is_read_with_a_warning(newer: str) -> None:
    with pytest.warns(UserWarning, match=r"metadata of version 7, as development versions of Flink 2\.4 write it"):
        found = statetool.load(newer)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = statetool.load(ZOO)
    assert found.metadata_version == NEWEST + 1
    assert found[OPERATOR].to_arrow().equals(expected[OPERATOR].to_arrow())


@pytest.mark.filterwarnings("ignore:.*metadata of version 7")
@pytest.mark.filterwarnings("ignore:.*did not exist when")
@pytest.mark.parametrize("release", [None, "2.3", "2.4", "2.4.1"])
def test_it_is_written_only_for_a_release_that_is_named(newer: str, tmp_path: Path, release: str | None) -> None:
    target = str(tmp_path / "written")
    writer = statetool.SavepointWriter.from_existing(statetool.load(newer))
    if release is None:
        with pytest.raises(OptionError, match=r"which only Flink 2\.4 will read.*convert SRC COPY --flink 2\.3"):
            writer.write(target)
        with pytest.raises(OptionError, match=r"which only Flink 2\.4 will read"):
            statetool.rescale(newer, target, {OPERATOR: 3})
        assert not Path(target).exists()
        return
    writer.write(target, flink_version=release)
    written = read(target)
    assert written.version == NEWEST
    assert {s.ref_checkpoint_id for o in written.operators for s in o.subtasks} == {None}


@pytest.mark.filterwarnings("ignore:.*metadata of version 7")
def test_convert_writes_a_copy_for_a_release_that_exists(newer: str, tmp_path: Path) -> None:
    statetool.convert(newer, str(tmp_path / "copy"), flink_version="2.3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = statetool.load(str(tmp_path / "copy"))
    assert copy.metadata_version == NEWEST
    assert copy[OPERATOR].to_arrow().equals(statetool.load(ZOO)[OPERATOR].to_arrow())


def test_writing_for_it_warns(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"Flink 2\.4 did not exist"):
        statetool.SavepointWriter.from_existing(statetool.load(ZOO)).write(
            str(tmp_path / "written"), flink_version="2.4"
        )
    with pytest.raises(OptionError, match=r"Flink '2\.5' is not a release"):
        statetool.SavepointWriter.from_existing(statetool.load(ZOO)).write(str(tmp_path / "other"), flink_version="2.5")


@pytest.mark.filterwarnings("ignore:.*metadata of version 7")
def test_check_says_which_releases_read_it_and_what_is_assumed(newer: str) -> None:
    refused = statetool.check(newer, flink_version="2.3")
    assert (refused.verdict, str(refused.causes[0].remedy)) == ("not", "Restore it with Flink 2.4 or later.")
    read = statetool.check(newer, flink_version="2.4")
    assert read.verdict != "not"
    assumed = [a.text for step in read.steps if step.step == "metadata" for a in step.assumptions]
    assert len(assumed) == 1
    assert "Flink 2.4 reads what its development branch read on 2026-11-30" in assumed[0]
    of_a_job = statetool.check(ZOO, newer)  # the new job is of 2.4, because its snapshot has this version
    assert of_a_job.verdict == statetool.check(ZOO, ZOO).verdict
    assert any("Flink 2.4" in a.text for step in of_a_job.steps for a in step.assumptions)


def test_what_forst_of_the_next_release_restores_is_unknown() -> None:
    verdicts = {r: statetool.check(ZOO, flink_version=r, backend="forst").verdict for r in ("2.3", "2.4")}
    assert verdicts == {"2.3": "not", "2.4": "unknown"}
