"""A job whose source triggers checkpoints itself (``induced/harness``) fails at the first one, unless it claims the snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import statetool as st
from tests.support.checks.restore_steps import found
from tests.support.compile import files_of, make_jar
from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine, FlinkRefusedError
from tools.flink_jars import compiled

pytestmark = pytest.mark.full
_JOB = HERE / "support" / "flink" / "induced"
_MODES = ("execution.savepoint-restore-mode", "execution.state-recovery.claim-mode")


@pytest.mark.parametrize("release", ["1.20.5", "2.3.0"])
def test_the_first_checkpoint_needs_a_claim(release: str, tmp_path: Path) -> None:
    """G2."""
    machine = FlinkMachine(release, tmp_path, (_JOB,))

    def run(**request: Any) -> str:
        return str(machine.call("class", **{"class": "InducedJob"}, **request)["path"])

    def restore(mode: str) -> str:
        return run(snapshot=savepoint, config=dict.fromkeys(_MODES, mode))

    try:
        savepoint = run(savepoint=str(tmp_path / "savepoint"))
        jar = make_jar(tmp_path / "job.jar", files_of(compiled(release, HERE / "support" / "flink" / "java", _JOB)))
        checks = {m: found(st.check(savepoint, other_jars=(jar,), claim_mode=m)) for m in ("no_claim", "claim")}
        before_claims = found(st.check(savepoint, other_jars=(jar,), flink_version="1.14"))
        with pytest.raises(FlinkRefusedError, match="Using externally induced sources, we can not enforce"):
            restore("NO_CLAIM")
        assert restore("CLAIM")
    finally:
        machine.close()
    assert ("G2", "unknown") in checks["no_claim"]
    assert "G2" not in dict(checks["claim"])
    assert "G2" not in dict(before_claims)
