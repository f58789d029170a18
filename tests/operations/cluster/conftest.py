"""Patience with servers on this machine, and a certificate for them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give servers on a busy machine time to answer."""
    monkeypatch.setenv("STATETOOL_FLINK_TIMEOUT", "300")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a certificate for 127.0.0.1 that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=flink"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    subprocess.run(command, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return folder / "both.pem"
