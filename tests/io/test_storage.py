"""Errors of storage: one line with the cause and the remedy, and exit code 3, whichever library raises them."""

from __future__ import annotations

import asyncio
import errno
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

import statetool
from statetool.cli.main import cli
from statetool.demo import SAVEPOINT
from statetool.errors import MissingDependencyError, StatetoolError, StorageError
from statetool.io import files
from statetool.io.targets import put_new
from statetool.spark.failures import own_error
from tests.support.servers.object_store import Store, object_store


def foreign(module: str, name: str, base: type[Exception] = Exception) -> type[Exception]:
    """Return an exception class that claims to be from a library."""
    return type(name, (base,), {"__module__": module})


#: Errors raised by backends, with words of the cause and of the remedy.
RAISED: list[tuple[Exception, str, str]] = [
    (
        foreign("botocore.exceptions", "NoCredentialsError")("Unable to locate credentials"),
        "no valid credentials",
        "AWS_",
    ),
    (
        foreign("botocore.exceptions", "ClientError")("An error occurred (ExpiredToken) when calling HeadObject"),
        "the credentials have expired",
        "AWS_",
    ),
    (PermissionError("Forbidden"), "access denied", "AWS_"),
    (
        foreign("botocore.exceptions", "EndpointConnectionError")('Could not connect to the endpoint URL: "http://x"'),
        "no answer",
        "AWS_ENDPOINT_URL",
    ),
    (foreign("botocore.exceptions", "ReadTimeoutError")("Read timeout on endpoint URL"), "no answer", "network"),
    (asyncio.TimeoutError(), "no answer", "network"),
    (foreign("fsspec.exceptions", "FSTimeoutError", asyncio.TimeoutError)(), "no answer", "network"),
    (foreign("botocore.exceptions", "ClientError")("(SlowDown) when calling GetObject"), "too busy", "fewer threads"),
    (OSError(errno.EBUSY, "Please reduce your request rate."), "too busy", "fewer threads"),
    (foreign("gcsfs.retry", "HttpError")("Anonymous caller does not have access, 401"), "access denied", "credentials"),
    (foreign("azure.core.exceptions", "ClientAuthenticationError")("no token"), "no valid credentials", "credentials"),
    (foreign("aiohttp.client_exceptions", "ClientConnectorError")("Cannot connect to host x"), "no answer", "network"),
    (OSError("HDFS list directory failed: libjvm"), "Hadoop", "CLASSPATH"),
    (foreign("botocore.exceptions", "Oddity")("first\nsecond"), "storage failed (Oddity: first)", ""),
]


class FailingFileSystem(MemoryFileSystem):
    """A file system on which every call fails."""

    protocol = "s3fails"
    error: Exception

    def __getattribute__(self, name: str) -> Any:
        if name in ("info", "ls", "find", "cat_file", "open", "isdir", "exists", "size", "pipe_file"):

            def fail(*_: object, **__: object) -> None:
                raise type(self).error

            return fail
        return super().__getattribute__(name)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> type[FailingFileSystem]:
    monkeypatch.setitem(_registry, "s3", FailingFileSystem)
    monkeypatch.setattr(FailingFileSystem, "protocol", "s3")
    return FailingFileSystem


@pytest.mark.parametrize(
    ("raised", "cause", "cure"), RAISED, ids=lambda v: type(v).__name__ if isinstance(v, Exception) else None
)
def test_an_error_of_storage_is_one_line(
    failing: type[FailingFileSystem], raised: Exception, cause: str, cure: str
) -> None:
    failing.error = raised
    for command in (
        ["info", "s3://b/job/chk-1"],
        ["ls", "s3://b/job"],
        ["verify", "s3://b/job/chk-1"],
        ["orphans", "s3://b/job"],
    ):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 3, (command, result.exception)
        (line,) = result.stderr.splitlines()
        assert line.startswith("error: cannot access s3://b/job")
        assert cause in line
        assert cure in line


def test_not_found_and_bugs_stay_what_they_are(failing: type[FailingFileSystem]) -> None:
    failing.error = FileNotFoundError("b/x")
    assert not files.exists("s3://b/x")
    failing.error = KeyError("a bug")
    with pytest.raises(KeyError):
        files.exists("s3://b/x")


def test_writing_fails_in_one_line_too(failing: type[FailingFileSystem]) -> None:
    failing.error = foreign("botocore.exceptions", "NoCredentialsError")("Unable to locate credentials")
    with pytest.raises(StorageError, match="no valid credentials"):
        put_new("s3://b/x", b"")


def test_an_error_of_a_task_comes_back_as_itself(failing: type[FailingFileSystem]) -> None:
    failing.error = PermissionError("Forbidden")
    with pytest.raises(StorageError) as error:
        files.exists("s3://b/x")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    back = own_error(
        f"Traceback (most recent call last):\nstatetool.errors.StorageError: {error.value}\n\n\tat org.apache.spark"
    )
    assert type(back) is StorageError
    assert str(back) == str(error.value)


@pytest.mark.parametrize(
    ("uri", "package"), [("gs://b/x", "statetool[gcs]"), ("abfs://b@x/y", "adlfs"), ("sftp://h/x", "paramiko")]
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, uri: str, package: str) -> None:
    for name in ("gcsfs", "adlfs", "paramiko"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.sftp", raising=False)
    _registry.pop(uri.partition("://")[0], None)
    with pytest.raises(MissingDependencyError, match="no package for") as error:
        statetool.load(uri)
    assert package in error.value.hint
    assert CliRunner().invoke(cli, ["info", uri]).exit_code == 3


@pytest.mark.parametrize("uri", ["swift://b/x", "S3X://b/x"])
def test_a_scheme_that_no_package_has_does_not_mean_that_the_file_does_not_exist(uri: str) -> None:
    with pytest.raises(MissingDependencyError, match=f"no file system for {uri[:3]}") as error:
        files.exists(uri)
    result = CliRunner().invoke(cli, ["verify", uri])
    assert result.exit_code == 3
    assert "does not exist" not in result.output
    assert "s3" in error.value.hint
    assert "hdfs" in error.value.hint


def test_hdfs_without_hadoop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HADOOP_HOME", "CLASSPATH", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = CliRunner().invoke(cli, ["info", "hdfs://nowhere/x"])
    assert result.exit_code == 3, result.exception
    assert len(result.stderr.splitlines()) == 1
    assert "CLASSPATH=" in result.stderr


# ---- the real libraries of S3 -------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Store]:
    with object_store("failing") as store:
        yield store


@pytest.fixture
def s3(server: Store) -> Iterator[Store]:
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    yield server
    server.refuse_each = 0
    s3fs.S3FileSystem.clear_instance_cache()


def one_line(*arguments: str) -> str:
    result = CliRunner().invoke(cli, [*arguments])
    assert result.exit_code == 3, result.exception
    (line,) = result.stderr.splitlines()
    return line


def test_s3_has_no_such_bucket(s3: Store) -> None:
    for arguments in (("info", "s3://nowhere/x"), ("ls", "s3://nowhere"), ("orphans", "s3://nowhere/checkpoints")):
        assert "the bucket s3://nowhere does not exist. check the name" in one_line(*arguments)
    assert "s3://failing/x does not exist" in one_line("info", "s3://failing/x")


def test_s3_writes_make_no_bucket(s3: Store) -> None:
    """A misspelt bucket is an error. s3fs would make it along with a folder."""
    export = ("export", SAVEPOINT, "orders", "keyed_state", "s3://nowhere/export", "--format", "csv")
    for arguments in (("copy", SAVEPOINT, "s3://nowhere/copy"), export):
        result = CliRunner().invoke(cli, [*arguments])
        assert "the bucket s3://nowhere does not exist. check the name" in result.stderr
        assert result.exit_code == 3
        assert not s3.fs.exists("nowhere")


def test_s3_without_credentials(s3: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    assert "no valid credentials (NoCredentialsError: Unable to locate credentials)" in one_line(
        "info", "s3://failing/x"
    )


@pytest.mark.full
def test_s3_without_a_server(s3: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert "no answer" in one_line("info", "s3://failing/x")


@pytest.mark.full
def test_s3_that_stays_busy(s3: Store) -> None:
    s3.fs.pipe_file("failing/chk-1/_metadata", b"x")
    s3.refuse_each = 1
    line = one_line("info", "s3://failing/chk-1")
    assert "too busy" in line or "storage failed" in line


def test_errors_of_storage_are_ours() -> None:
    assert issubclass(StorageError, StatetoolError)
