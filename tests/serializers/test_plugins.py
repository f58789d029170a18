"""Serializers of other packages: the example of the documentation, as it would be installed, and packages that do not work."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.errors import OptionError, UnknownSerializerError
from statetool.io.cursor import Cursor
from statetool.io.output import Output
from statetool.serializers import plugins
from statetool.serializers.table import FAMILIES, bundled_classes, snapshot_reader
from tests.support.snapshots import build, canonical

PAGE: Final = Path(__file__).parents[2] / "docs" / "internals" / "extending.md"
MONEY: Final = "com.acme.state.MoneySerializerSnapshot"
VALUE: Final = (1999, "EUR")
RAW: Final = b"\0\0\0\0\0\0\x07\xcf\0\3EUR"


def files_of_the_page() -> dict[str, str]:
    """Return the files of the example by name."""
    blocks = re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', PAGE.read_text("utf-8"), re.DOTALL)
    return dict(blocks)


def install(folder: Path, package: str, module: str, code: str, *points: str) -> None:
    """Lay out a package as an installer does."""
    (folder / f"{module}.py").write_text(code, "utf-8")
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{plugins.GROUP}]", *points, ""]))


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the example."""
    files = files_of_the_page()
    (group,) = re.findall(r'\[project.entry-points."(.+)"\]\n', files["pyproject.toml"])
    (point,) = re.findall(r'^"(.+)" = "(.+)"$', files["pyproject.toml"], re.MULTILINE)
    assert group == plugins.GROUP
    folder = tmp_path / "installed"
    folder.mkdir()
    install(folder, "acme-state", "acme_state", files["acme_state.py"], " = ".join(point))
    monkeypatch.syspath_prepend(folder)
    return folder


def money() -> bytes:
    return snapshot_of(MONEY)


def snapshot_of(name: str, version: int = 1) -> bytes:
    out = Output()
    out.utf(name)
    out.i4(version)
    return bytes(out)


def bank(folder: Path) -> statetool.Operator:
    """Return a savepoint with money in its state."""
    folder.mkdir()
    key = canonical.serializer(build.STRING)
    entries = [
        (
            "balance",
            canonical.group_of(key, k, 128),
            canonical.composite_key(canonical.encoded(key, k)),
            RAW,
        )
        for k in ("a", "b", "c")
    ]
    states = [canonical.keyed("balance", "value", money())]
    return canonical.savepoint(folder, [canonical.Subtask(key=build.STRING, states=states, entries=entries)])


@pytest.mark.usefixtures("acme")
def test_the_example_is_read_and_written(tmp_path: Path) -> None:
    s = snapshot_reader().snapshot(Cursor(money()))
    assert (s.type_name, s.decode(Cursor(RAW)), canonical.encoded(s, VALUE)) == ("Money", VALUE, RAW)
    rows = bank(tmp_path / "bank").to_arrow("balance").to_pylist()
    assert [r["value"] for r in rows] == [{"cents": 1999, "currency": "EUR"}] * 3
    listed = snapshot_reader().snapshot(Cursor(build.list_of(money())))
    assert listed.decode(Cursor(b"\0\0\0\1" + RAW)) == [VALUE]


@pytest.mark.usefixtures("acme")
def test_the_example_is_refused_in_another_version_and_for_other_classes() -> None:
    with pytest.raises(UnknownSerializerError, match=f"{MONEY} version 2 is not known, only 1"):
        snapshot_reader().snapshot(Cursor(snapshot_of(MONEY, 2)))
    for other in ("com.acme.state.RateSerializerSnapshot", "com.acme.state.v2.MoneySerializerSnapshot"):
        with pytest.raises(UnknownSerializerError, match=f"{other}' is not known"):
            snapshot_reader().snapshot(Cursor(snapshot_of(other)))


def test_tasks_of_spark_read_the_example(acme: Path, tmp_path: Path, spark: Any) -> None:
    archive = tmp_path / "acme_state.zip"
    with zipfile.ZipFile(archive, "w") as z:
        for file in acme.rglob("*"):
            if "__pycache__" not in file.parts:
                z.write(file, file.relative_to(acme))
    spark.sparkContext.addPyFile(str(archive))
    bank(tmp_path / "bank")
    operator = statetool.load(str(tmp_path / "bank"), spark=spark, uids=["op"], local_bytes=0)["op"]
    assert sorted(tuple(r.value) for r in operator.state("balance").collect()) == [VALUE] * 3


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("code", "point", "message"),
    [
        ("import not_there", "com.acme.broken = broken:SNAPSHOTS", "cannot be loaded: ModuleNotFoundError"),
        ("1 / 0", "com.acme.broken = broken:SNAPSHOTS", "cannot be loaded: ZeroDivisionError"),
        ("", "com.acme.broken = broken:SNAPSHOTS", "cannot be loaded: AttributeError"),
        ("S = [1]", "com.acme.broken = broken:S", "are not a mapping of class names to SnapshotClass"),
        ("S = {'com.acme.broken.XSnapshot': len}", "com.acme.broken = broken:S", "are not a mapping of class names"),
        (
            "from acme_state import SNAPSHOTS",
            "com.acme.broken = broken:SNAPSHOTS",
            f"cannot read {re.escape(MONEY)}: the entry point is for other classes of com.acme.broken",
        ),
        (
            "from acme_state import SNAPSHOTS as S\ndef fail(*_): return {}['x']\n"
            "S = {'com.acme.broken.XSnapshot': [*S.values()][0]._replace(read=fail)}",
            "com.acme.broken = broken:S",
            r"acme-broken failed to read com\.acme\.broken\.XSnapshot: KeyError",
        ),
    ],
)
def test_a_package_that_does_not_work_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, point: str, message: str
) -> None:
    install(tmp_path, "acme-broken", "broken", code, point)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(OptionError, match=message) as caught:
        snapshot_reader().snapshot(Cursor(snapshot_of("com.acme.broken.XSnapshot")))
    assert "acme-broken" in caught.value.message
    # Other classes do not need it.
    assert snapshot_reader().snapshot(Cursor(money())).decode(Cursor(RAW)) == VALUE


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize("package", ["com.acme.state", "org.apache.beam.runners.flink.translation.types"])
def test_two_packages_cannot_read_the_same_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    of = "acme_state" if "acme" in package else "statetool.serializers.libraries.beam.serializer"
    install(tmp_path, "rival-state", "rival_state", f"from {of} import SNAPSHOTS", f"{package} = rival_state:SNAPSHOTS")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rival_state", raising=False)
    with pytest.raises(OptionError, match=rf"two packages read {re.escape(package)}.*: .*rival-state") as caught:
        plugins.plugin_classes(package)
    assert ("acme-state" if "acme" in package else "statetool") in caught.value.message


def test_bundled_classes_belong_to_no_family() -> None:
    names = bundled_classes()
    assert {name.rpartition(".")[0] for name in names} == set(plugins.BUNDLED)
    for name in names:
        assert snapshot_reader().classes[name] is names[name]
        simple = name.rpartition(".")[2]
        for other in (f"com.acme.{simple}", f"{name}2", simple, name.replace(".", "/"), f"x{name}"):
            with pytest.raises(UnknownSerializerError, match="is not known"):
                snapshot_reader().snapshot(Cursor(snapshot_of(other)))


def test_snapshots_of_flink_alone_do_not_look_for_packages() -> None:
    code = (
        "import sys, statetool\nfrom statetool.demo import SAVEPOINT\n"
        "statetool.load(SAVEPOINT).metadata_rows('states')\n"
        "print([m for m in sys.modules if m.startswith('statetool.serializers.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "statetool.serializers.typeutils.basic" in done.stdout
    assert not [name for name in ("plugins", "beam", "flinkx") if f"serializers.{name}" in done.stdout]
    assert not {"beam", "flinkx"} & set(FAMILIES)
