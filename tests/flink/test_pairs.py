"""The verdicts of ``check`` match Flink's behavior, with every pair restored again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.verdicts.check import check_findings
from statetool.verdicts.commands import CommandLine
from tests.support.corpora.archives import unpack
from tests.support.flink import pairs
from tests.support.flink.machine import FlinkMachine

pytestmark = pytest.mark.full


def test_flink_does_with_each_pair_what_the_table_says(flink: FlinkMachine, tmp_path: Path) -> None:
    compare(flink, tmp_path, avro=False)


def test_flink_does_with_each_pair_of_avro_what_the_table_says(avro_flink: FlinkMachine, tmp_path: Path) -> None:
    compare(avro_flink, tmp_path, avro=True)


def compare(flink: FlinkMachine, work: Path, *, avro: bool) -> None:
    """Restore all pairs of Avro or all others, and compare the results with the table."""
    snapshots = unpack(pairs.SNAPSHOTS, work / "snapshots")
    for old in pairs.releases_before(flink.version):
        rows = pairs.table(avro=avro)
        kept = [r for r in rows if (r.written_by, r.release) == (old, pairs.short(flink.version))]
        found = list(pairs.outcomes(flink, snapshots, work, old, pairs.suites(avro=avro)))
        assert found == kept, (
            f"python -m tests.support.flink.pairs{' --avro DIR' if avro else ''} writes the table again"
        )


@pytest.mark.parametrize("backend", pairs.BACKENDS)
def test_flink_restores_what_the_suggested_commands_write(flink: FlinkMachine, tmp_path: Path, backend: str) -> None:
    """Every refused pair gets a command. Run as printed, the commands write a savepoint that Flink restores.

    A migration that loses something has ``--dry-run``: it needs a decision.
    """
    release = pairs.short(flink.version)
    refused = {
        (r.suite, r.pair)
        for r in pairs.table(avro=False)
        if (r.written_by, r.release, r.backend, r.flink) == (release, release, backend, "refused")
    }
    snapshots = unpack(pairs.SNAPSHOTS, tmp_path / "snapshots")
    wrong: list[tuple[str, str]] = []
    mended_pairs = decisions = 0
    for suite in pairs.suites(avro=False):
        if suite.by_flink or suite.whole:
            continue
        new = pairs.new_savepoint(suite, snapshots, release)
        for pair in suite.pairs:
            if (suite.name, pair.name) not in refused or pair.old is None or pair.new is None:
                continue
            old = tmp_path / suite.name / pair.name
            limit = pair.old.max_parallelism or 128
            writer = st.SavepointWriter.new().with_operator(
                pair.name, pair.old.bootstrap(), parallelism=1, max_parallelism=limit
            )
            writer.write(str(old), flink_version=release)
            commands = suggested(old, new, backend, pair.name)
            if any("--dry-run" in command for command in commands):
                decisions += 1
                continue
            mended: Path | None = old
            for i, command in enumerate(commands):
                target = old.with_name(f"{pair.name}-{i}")
                paths = {str(old): str(mended), "NEW": str(target)}
                done = CliRunner().invoke(cli, [paths.get(word, word) for word in shlex.split(command)[1:]])
                mended = target if done.exit_code == 0 else None
                if mended is None:
                    # Some value does not fit the new type, which no plan can know.
                    assert (done.exit_code, "statetool migrate" in command, target.exists()) == (3, True, False), (
                        done.output
                    )
                    break
            if mended is None:
                decisions += 1
                continue
            mended_pairs += mended != old
            if pairs.restore(flink, mended, {pair.name: pair.new}, backend) is None:
                wrong.append((suite.name, pair.name))
    assert wrong == []
    assert mended_pairs > 40, (mended_pairs, decisions)


def suggested(old: Path, new: Path, backend: str, uid: str) -> list[str]:
    """Return the commands that are suggested against errors of one operator, each once."""
    # Savepoints of 1.20 store only ids.
    a, b = (st.load(str(path), uids=[uid]) for path in (old, new))
    check = st.check(a, b, backend="heap" if backend == "hashmap" else "rocksdb")
    findings = check_findings(check, CommandLine(a=a.path, b=b.path), st.plan_migration(a, b)).findings
    commands = [f.command for f in findings if f.severity == "error" and f.where[0] == f"operator {uid}"]
    return list(dict.fromkeys(c for c in commands if c))
