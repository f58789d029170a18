"""Chinese pages beside the English ones: ``README.zh.md`` and ``docs/zh``.

``python -m tools.translations [PAGE ...]`` copies the code and the outputs of the English pages into the Chinese ones and lists what else
differs. Each Chinese page ends with a checksum of the English text that it translates. After you have brought a page up to date,
``python -m tools.translations --accept PAGE`` writes the new one.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from os.path import normpath
from pathlib import Path
from typing import Final

from tools.sandbox import ROOT

FOLDER: Final = ROOT / "docs" / "zh"
_README: Final = ROOT / "README.zh.md"
_FENCE: Final = re.compile(r"^ *```\w*\n.*?^ *```$", re.DOTALL | re.MULTILINE)
#: The line below the title, which leads to the page in the other language.
_LANGUAGE: Final = re.compile(r"^\[(?:English|中文)\]\((?P<target>[^)]+)\).*\n", re.MULTILINE)
_STAMP: Final = re.compile(r"^<!-- translation of (?P<page>\S+), checksum (?P<checksum>\w+) -->\n", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_INLINE_CODE: Final = re.compile(r"`([^`]+)`")
_NUMBER: Final = re.compile(r"\d(?:[\d,.]*\d)?")
_HEADING: Final = re.compile(r"^(#+) (.*)$", re.MULTILINE)
#: A block of code in the text of a page, and the first characters of other blocks than paragraphs.
_CODE: Final = "`code`"
_MARKS: Final = {_CODE: "code", "#": "heading", "|": "table", "* ": "list"}


def translations() -> list[Path]:
    """Return the Chinese pages."""
    return [_README, *sorted(FOLDER.rglob("*.md"))]


def english_of(page: Path) -> Path | None:
    """Return the English page of a Chinese one, and None for any other page."""
    if page == _README:
        return ROOT / "README.md"
    return ROOT / "docs" / page.relative_to(FOLDER) if page.is_relative_to(FOLDER) else None


def chinese_of(page: Path) -> Path | None:
    """Return the Chinese page of an English one, and None if there is none."""
    return next((chinese for chinese in translations() if english_of(chinese) == page), None)


def differences(page: Path, text: str, english: str) -> Iterator[str]:
    """Yield what a Chinese page lacks or has that its English page does not say, and what to do about it."""
    source = _required(english_of(page))
    if _FENCE.findall(text) != _FENCE.findall(english):
        yield "code and outputs differ: run python -m tools.translations"
    yield from _wrong_ways(page, text, source, english)
    ours, theirs = _prose(text), _prose(english)
    for number, (block, wanted) in enumerate(zip_longest(_outline(ours), _outline(theirs)), 1):
        if block != wanted:
            yield f"block {number} is {block}, in English {wanted}"
            break
    if (links := _targets(page, ours)) != (wanted_links := _translated(_targets(source, theirs))):
        yield f"links differ: {list((links - wanted_links) + (wanted_links - links))}"
    if (names := _inline_code(ours)) != (wanted_names := _inline_code(theirs)):
        yield f"names in `code` differ: {sorted(names ^ wanted_names)}"
    if missing := _numbers(theirs) - _numbers(ours):
        yield f"numbers are missing: {sorted(missing)}"
    found = _STAMP.search(text)
    if found is None or found[0] != _stamp(source, english):
        yield (
            f"{source.relative_to(ROOT)} has changed since it was translated (git log -p shows how): correct the Chinese page, "
            f"then run python -m tools.translations --accept {page.relative_to(ROOT)}"
        )


def copy_code(text: str, english: str) -> str:
    """Return a Chinese page with the code and outputs of its English page, if it has as many."""
    blocks = _FENCE.findall(english)
    if len(_FENCE.findall(text)) != len(blocks):
        return text
    following = iter(blocks)
    return _FENCE.sub(lambda _: next(following), text)


def with_english_anchors(text: str, english: str) -> str:
    """Return the text of a Chinese page whose headings have the anchors of the English page, for the site."""
    anchors = iter(_anchors(english))
    parts = re.split(f"({_FENCE.pattern})", text, flags=_FENCE.flags)
    for index in range(0, len(parts), 2):  # those between are code
        parts[index] = _HEADING.sub(lambda heading: f"{heading[0]} {{#{next(anchors)}}}", parts[index])
    return "".join(parts)


def _anchors(text: str) -> list[str]:
    from markdown.extensions.toc import slugify, unique

    known: set[str] = set()
    titles = [re.sub(r"`|\[|\]\([^)]*\)", "", title) for _, title in _HEADING.findall(_FENCE.sub("", text))]
    return [unique(slugify(title, "-"), known) for title in titles]


def _wrong_ways(page: Path, text: str, source: Path, english: str) -> Iterator[str]:
    for here, there, content in ((page, source, text), (source, page, english)):
        found = _LANGUAGE.search(content)
        if found is None or _resolved(here, found["target"]) != str(there):
            yield f"{here.relative_to(ROOT)} has no line below its title that leads to {there.relative_to(ROOT)}"


def _prose(text: str) -> str:
    """Return a page without what is not translated: code, the link to the other language and the checksum."""
    return _STAMP.sub("", _LANGUAGE.sub("", _FENCE.sub(_CODE, text), count=1))


def _outline(prose: str) -> list[str]:
    """Return the kinds of a page's blocks: headings with their level, tables with their rows, lists with their items."""
    blocks: list[list[str]] = []
    before = ""
    for line in prose.splitlines():
        kind = _kind(line, before)
        if kind and kind == before and kind in ("table", "list", "paragraph"):
            blocks[-1].append(line)
        elif kind:
            blocks.append([kind, line])
        before = kind
    return [_named(kind, lines) for kind, *lines in blocks]


def _kind(line: str, before: str) -> str:
    if not line.strip():
        return ""
    if line.startswith(" ") and before == "list":
        return "list"
    return next((kind for mark, kind in _MARKS.items() if line.startswith(mark)), "paragraph")


def _named(kind: str, lines: list[str]) -> str:
    if kind == "heading":
        return f"heading of level {lines[0].index(' ')}"
    if kind == "table":
        return f"table with {len(lines)} lines"
    return f"list with {sum(line.startswith('* ') for line in lines)} items" if kind == "list" else kind


def _resolved(page: Path, link: str) -> str:
    path, hash_, anchor = link.partition("#")
    return link if ":" in path else f"{normpath(page.parent / path) if path else page}{hash_}{anchor}"


def _targets(page: Path, prose: str) -> Counter[str]:
    return Counter(_resolved(page, link) for link in _LINK.findall(prose))


def _translated(targets: Counter[str]) -> Counter[str]:
    """Return the targets in which Chinese pages take the place of their English ones."""
    result: Counter[str] = Counter()
    for target, count in targets.items():
        path, hash_, anchor = target.partition("#")
        result[f"{chinese_of(Path(path)) or path}{hash_}{anchor}"] += count
    return result


def _inline_code(prose: str) -> set[str]:
    return {" ".join(name.split()) for name in _INLINE_CODE.findall(prose)}


def _numbers(prose: str) -> set[str]:
    return set(_NUMBER.findall(_LINK.sub("]", _INLINE_CODE.sub("", prose))))


def _stamp(source: Path, english: str) -> str:
    checksum = hashlib.sha256(" ".join(_prose(english).split()).encode()).hexdigest()[:16]
    return f"<!-- translation of {source.relative_to(ROOT)}, checksum {checksum} -->\n"


def _required(page: Path | None) -> Path:
    if page is None:
        raise SystemExit(
            f"not a Chinese page. The Chinese pages are {_README.name} and those below {FOLDER.relative_to(ROOT)}"
        )
    return page


def _update(page: Path, *, accept: bool) -> bool:
    """Update a page, print what differs, and return True if nothing does."""
    source = _required(english_of(page))
    english, text = source.read_text("utf-8"), page.read_text("utf-8")
    new = copy_code(text, english)
    if accept:
        new = f"{_STAMP.sub('', new).rstrip()}\n\n{_stamp(source, english)}"
    problems = list(differences(page, new, english))
    if new != text and not (accept and problems):
        page.write_text(new, "utf-8")
        print(page.relative_to(ROOT), "changed")
    for problem in problems:
        print(f"{page.relative_to(ROOT)}: {problem}", file=sys.stderr)
    return not problems


def main() -> None:
    """Run the command line."""
    accept = "--accept" in sys.argv
    chosen = [Path(name).resolve() for name in sys.argv[1:] if name != "--accept"]
    if accept and not chosen:
        raise SystemExit("--accept needs the pages that you have compared")
    equal = [_update(page, accept=accept) for page in chosen or translations()]
    sys.exit(not all(equal))


if __name__ == "__main__":
    main()
