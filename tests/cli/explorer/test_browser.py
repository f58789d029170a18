"""Pages of the explorer in a browser: their width and colors, and the way in by the address with the token."""

from __future__ import annotations

import json
import re
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any, Final

import pytest

import statetool
from statetool.cli.explorer.style import SHEET
from tests.support.servers.explorer import exploring
from tests.support.zoo import ZOO

pytestmark = pytest.mark.full

#: A page around another one, with the sheet in it, because no site may frame the pages of the explorer.
AROUND: Final = """<!DOCTYPE html><body>{frames}<pre id="seen"></pre><script>
const seen = {{}};
window.onload = () => {{ for (const frame of document.querySelectorAll("iframe")) {{  // which have been loaded before the page is
  const d = frame.contentDocument, width = frame.clientWidth;
  for (const block of d.querySelectorAll("details")) block.open = true;
  const wide = [...d.querySelectorAll("body *")].filter(n => !n.closest(".scroll") && !n.closest(".skip")
    && n.getBoundingClientRect().right > width + 1);
  const inputs = [...d.querySelectorAll("input:not([type=hidden]), select, textarea")];
  seen[frame.id] = {{
    over: d.documentElement.scrollWidth - d.documentElement.clientWidth, wide: wide.map(n => n.outerHTML.slice(0, 80)),
    back: getComputedStyle(d.body).backgroundColor, text: getComputedStyle(d.body).color, h1: d.querySelectorAll("h1").length,
    unlabelled: inputs.filter(n => !n.labels.length).length,
    unnamed: [...d.querySelectorAll("a, button")].filter(n => !n.textContent.trim()).length,
    main: d.querySelectorAll("main").length, lang: d.documentElement.lang,
    untabbable: [...d.querySelectorAll("a, button, input, summary")].filter(n => n.tabIndex < 0).length,
  }};
}} document.getElementById("seen").textContent = JSON.stringify(seen); }};</script>"""


def chromium(browser: str, folder: Path, address: str, *, dark: bool) -> str:
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--window-size=1400,1000",
            "--dump-dom",
            address,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--browser"))


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return the pages of a snapshot, with the sheet in them."""
    operator = statetool.load(ZOO)["collections-by-string"].operator_id
    paths = {
        "snapshot": "/snapshot",
        "table": f"/table?o={operator}",
        "key": f"/key?o={operator}&key=a",
        "restore": "/snapshot?flink=2.3",
        "sizes": "/sizes",
        "query": "/sql?q=FROM+states+SELECT+*",
        "differences": "/diff?a=.&b=.",
        "error": "/table?o=none",
    }
    with exploring(ZOO, is_root=False) as explorer:
        made = {name: explorer.get(path).text for name, path in paths.items()}
    return {name: page.replace("</head>", f"<style>{SHEET}</style></head>") for name, page in made.items()}


@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_phones_and_can_be_read(browser: str, tmp_path: Path, pages: dict[str, str], dark: bool) -> None:
    frames = "".join(
        f'<iframe id="{name}-{width}" style="border:0;width:{width}px;height:900px" srcdoc="{escape(page)}"></iframe>'
        for name, page in pages.items()
        for width in (390, 1200)
    )
    around = tmp_path / "around.html"
    around.write_text(AROUND.format(frames=frames))
    match = re.search('<pre id="seen">(.*?)</pre>', chromium(browser, tmp_path, around.as_uri(), dark=dark), re.DOTALL)
    assert match
    seen: dict[str, dict[str, Any]] = json.loads(unescape(match.group(1)))
    assert len(seen) == 2 * len(pages)
    for name, page in seen.items():
        assert (page["over"], page["wide"]) == (0, []), name
        assert (page["h1"], page["main"], page["lang"]) == (1, 1, "en"), name
        assert (page["unlabelled"], page["unnamed"], page["untabbable"]) == (0, 0, 0), name
        back, text = (sum(map(int, re.findall(r"\d+", page[part]))) for part in ("back", "text"))
        assert (back < 150 and text > 600) if dark else (back > 700 and text < 200)


def test_the_printed_address_opens_the_explorer_and_runs_no_script(browser: str, tmp_path: Path) -> None:
    with exploring(ZOO, is_root=False) as explorer:
        shown = chromium(browser, tmp_path, explorer.address, dark=False)
        refused = chromium(browser, tmp_path / "other", explorer.address.partition("?")[0], dark=False)
    assert "<h1>Snapshot" in shown
    assert explorer.token not in shown
    assert "401 Unauthorized" in refused
