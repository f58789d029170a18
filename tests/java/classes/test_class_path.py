"""Classes in jars of all forms, damaged and hostile jars, and the cache of indexes."""

from __future__ import annotations

import os
import random
import zipfile
from pathlib import Path
from weakref import WeakValueDictionary

import pytest

from statetool.errors import FormatError, SnapshotNotFoundError, StatetoolError, UnsupportedError
from statetool.java.classes import class_path
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.declarations import declare_classes
from tests.support.compile import files_of, jar_bytes, make_jar

_MANIFEST = "META-INF/MANIFEST.MF"


def renamed(data: bytes, name: str) -> bytes:
    """Return a class file with another name of the same length."""
    return data.replace(b"acme/Shop$Item", name.encode())


@pytest.fixture(scope="module")
def item(shop: Path) -> bytes:
    return (shop / "acme" / "Shop$Item.class").read_bytes()


def test_a_jar_a_folder_and_a_class_file_have_the_same_classes(shop: Path, item: bytes, tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "job.jar", {**files_of(shop), "module-info.class": b"", "a.txt": b"a"})
    wanted = list(ClassPath([shop]))
    assert list(ClassPath([jar])) == list(ClassPath([tmp_path])) == wanted
    assert list(ClassPath([shop / "acme" / "Shop$Item.class"])) == ["acme.Shop$Item"]
    assert declare_classes(ClassPath([jar])) == declare_classes(ClassPath([shop]))
    assert ClassPath([jar]).supertypes("acme.Shop$Puppy")[:3] == ["acme.Shop$Dog", "acme.Shop$Pet", "java.lang.Object"]


def test_jars_in_a_jar(shop: Path, tmp_path: Path) -> None:
    classes = {f"BOOT-INF/classes/{name}": data for name, data in files_of(shop).items() if "Dog" in name}
    others = {name: data for name, data in files_of(shop).items() if "Dog" not in name}
    outer = {**classes, "BOOT-INF/lib/a.jar": jar_bytes({"lib/b.jar": jar_bytes(others)})}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        path = ClassPath([make_jar(tmp_path / f"job{method}.jar", outer, method=method)])
        assert list(path) == list(ClassPath([shop]))
        assert path.subclasses("acme.Shop$Pet") == ["acme.Shop$Cat", "acme.Shop$Dog", "acme.Shop$Puppy"]
        assert path.file_of("acme.Shop$Item").endswith(".jar!BOOT-INF/lib/a.jar!lib/b.jar!acme/Shop$Item.class")
        assert declare_classes(path) == declare_classes(ClassPath([shop]))


@pytest.mark.parametrize(("release", "flag", "found"), [(21, True, 17), (11, True, 11), (8, True, 0), (21, False, 0)])
def test_a_multi_release_jar_has_the_highest_release(
    item: bytes, tmp_path: Path, release: int, flag: bool, found: int
) -> None:
    versions = {n: item.replace(b"name", f"na{n:02}".encode()) for n in (0, 9, 11, 17, 25)}
    files = {f"META-INF/versions/{n}/acme/Shop$Item.class": data for n, data in versions.items() if n}
    files["acme/Shop$Item.class"] = versions[0]
    files[_MANIFEST] = b"Manifest-Version: 1.0\r\n" + (b"Multi-Release: true\r\n" if flag else b"")
    cls = ClassPath([make_jar(tmp_path / "a.jar", files)], release=release).read("acme.Shop$Item")
    assert cls is not None
    assert f"na{found:02}" in [f.name for f in cls.fields]


def test_the_first_class_of_a_name_wins(item: bytes, tmp_path: Path) -> None:
    first = make_jar(tmp_path / "first.jar", {"acme/Shop$Item.class": item.replace(b"name", b"nick")})
    second = make_jar(tmp_path / "second.jar", {"acme/Shop$Item.class": item})
    for jars, name in (([first, second], "nick"), ([second, first], "name")):
        cls = ClassPath(jars).read("acme.Shop$Item")
        assert cls is not None
        assert name in [f.name for f in cls.fields]


def test_an_index_is_cached_by_content(
    shop: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = files_of(shop)
    first = list(ClassPath([make_jar(tmp_path / "a.jar", files)]))
    (cached,) = empty_cache.iterdir()
    (tmp_path / "b.jar").write_bytes((tmp_path / "a.jar").read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(class_path, "_Indexer", None)
        assert list(ClassPath([tmp_path / "b.jar"])) == first
    cached.write_bytes(b"[1, 2")
    assert list(ClassPath([tmp_path / "b.jar"])) == first
    assert len(list(ClassPath([make_jar(tmp_path / "a.jar", dict(list(files.items())[:-1]))]))) == len(first) - 1


def test_only_the_newest_indexes_stay_in_the_cache(
    item: bytes, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_path, "_MOST_CACHED", 3)
    for n in range(5):
        ClassPath([make_jar(tmp_path / "a.jar", {"A.class": item, f"{n}.txt": b""})])
    assert len(list(empty_cache.iterdir())) == 3


def test_missing_and_damaged_files_are_named(item: bytes, tmp_path: Path) -> None:
    with pytest.raises(SnapshotNotFoundError, match=r"none\.jar"):
        ClassPath([tmp_path / "none.jar"])
    for name, data in (("empty.jar", b""), ("text.jar", b"no jar"), ("short.class", item[:100])):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=name):
            ClassPath([tmp_path / name])
    jar = make_jar(tmp_path / "a.jar", {"lib/b.jar": jar_bytes({"A.class": item[:200]})})
    with pytest.raises(FormatError, match=r"a\.jar!lib/b\.jar!A\.class"):
        ClassPath([jar])


def test_a_class_without_a_name_is_damaged(item: bytes, tmp_path: Path) -> None:
    assert item.count(b"\x00\x0eacme/Shop$Item") == 1
    for name in (b"\x00\x00", b"\x00\x0eacme/Shop;Item"):
        jar = make_jar(tmp_path / "a.jar", {"A.class": item.replace(b"\x00\x0eacme/Shop$Item", name)})
        with pytest.raises(FormatError, match=r"invalid name.*a\.jar!A\.class"):
            ClassPath([jar])


def test_a_class_that_does_not_match_its_checksum_is_refused(item: bytes, tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "a.jar", {"A.class": item}, method=zipfile.ZIP_STORED)
    jar.write_bytes(jar.read_bytes().replace(b"\x04name", b"\x04nick", 1))
    path = ClassPath([jar])
    with pytest.raises(FormatError, match="checksum"):
        path.read("acme.Shop$Item")


def test_bombs_are_refused(item: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = make_jar(tmp_path / "large.jar", {"A.class": bytes(17 << 20)})
    with pytest.raises(UnsupportedError, match=r"large\.jar!A\.class is larger than 16 MiB"):
        ClassPath([large])
    monkeypatch.setattr(class_path, "_MAX_TOTAL_BYTES", 1 << 20)
    many = make_jar(tmp_path / "many.jar", {f"{n}.class": item + bytes(1 << 17) for n in range(9)})
    with pytest.raises(StatetoolError, match=r"many\.jar"):
        ClassPath([many])
    monkeypatch.setattr(class_path, "_MAX_ENTRIES", 5)
    with pytest.raises(UnsupportedError, match=r"many\.jar has more than 5 entries"):
        ClassPath([many])


def test_an_entry_that_is_larger_than_declared_is_refused(item: bytes, tmp_path: Path) -> None:
    jar = make_jar(tmp_path / "a.jar", {"A.class": item + bytes(1 << 16)})
    size = (len(item) + (1 << 16)).to_bytes(4, "little")
    jar.write_bytes(jar.read_bytes().replace(size, len(item).to_bytes(4, "little")))
    with pytest.raises(FormatError, match=r"a\.jar!A\.class"):
        ClassPath([jar])


def test_jars_nested_without_end_are_refused(item: bytes, tmp_path: Path) -> None:
    data = jar_bytes({"A.class": item})
    for _ in range(6):
        data = jar_bytes({"lib/a.jar": data})
    (tmp_path / "deep.jar").write_bytes(data)
    with pytest.raises(UnsupportedError, match=r"deep\.jar.* nested deeper than 4"):
        ClassPath([tmp_path / "deep.jar"])


def test_cycles_of_superclasses_are_errors(shop: Path, tmp_path: Path) -> None:
    dog, pet = ((shop / "acme" / f"Shop${n}.class").read_bytes() for n in ("Dog", "Pet"))
    # The pet extends the dog, which extends the pet.
    cycle = pet.replace(b"java/lang/Object", b"acme/Shop$Dog" + b"xxx").replace(
        b"\x00\x10acme/Shop$Dogxxx", b"\x00\x0dacme/Shop$Dog"
    )
    jar = make_jar(tmp_path / "a.jar", {"acme/Shop$Dog.class": dog, "acme/Shop$Pet.class": cycle})
    path = ClassPath([jar])
    assert path.supertypes("acme.Shop$Dog")[0] == "acme.Shop$Pet"
    assert path.subclasses("acme.Shop$Dog") == ["acme.Shop$Pet"]
    with pytest.raises(FormatError, match=r"is its own superclass.*a\.jar!acme/Shop\$Dog\.class"):
        declare_classes(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_jars_raise_errors_of_statetool_only(shop: Path, tmp_path: Path, method: int) -> None:
    files = {name: data for name, data in files_of(shop).items() if any(n in name for n in ("Op", "Item", "Dog"))}
    jar = make_jar(
        tmp_path / "a.jar", {**files, "lib/b.jar": jar_bytes(files), _MANIFEST: b"Multi-Release: true"}, method=method
    )
    whole = jar.read_bytes()
    chance = random.Random(method)
    for n in range(120):
        damaged = bytearray(whole if n % 4 else whole[: chance.randrange(len(whole))])
        for _ in range(chance.randrange(1, 4) if damaged else 0):
            # Most of the damage hits the directory at the end, where the structure of a jar is.
            at = (
                chance.randrange(len(damaged))
                if n % 2
                else len(damaged) - 1 - chance.randrange(min(1500, len(damaged)))
            )
            damaged[at] ^= 1 << chance.randrange(8)
        jar.write_bytes(damaged)
        try:
            declare_classes(ClassPath([jar]))
        except StatetoolError as error:
            assert "a.jar" in str(error)


@pytest.mark.full
def test_the_index_of_a_large_jar_is_kept(
    item: bytes, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    with zipfile.ZipFile(tmp_path / "large.jar", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for n in range(50_000):
            # Bytes behind the fields stand for methods; they make 200 MB of classes that compress badly.
            archive.writestr(f"c/{n}.class", renamed(item, f"{n:014}") + chance.randbytes(3500))
    assert (tmp_path / "large.jar").stat().st_size > 190 << 20
    assert len(ClassPath([tmp_path / "large.jar"])) == 50_000
    monkeypatch.setattr(class_path, "_INDEXES", WeakValueDictionary())  # as in another process
    monkeypatch.setattr(class_path, "_Indexer", None)
    assert len(ClassPath([tmp_path / "large.jar"])) == 50_000


def test_a_jar_that_is_opened_often_keeps_one_file_open(shop: Path, tmp_path: Path) -> None:
    """Snapshots have cycles of references, so their jars stay open until the garbage collector runs."""
    jar = make_jar(tmp_path / "shop.jar", files_of(shop))
    before = len(os.listdir("/dev/fd"))
    paths = [ClassPath([jar]) for _ in range(20)]
    assert len(os.listdir("/dev/fd")) <= before + 1
    assert len({tuple(path) for path in paths}) == 1
