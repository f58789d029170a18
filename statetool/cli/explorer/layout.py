"""The document around each page, and addresses of pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from statetool.html.markup import Html, element, join


def address(page: str, **given: Any) -> str:
    """Return the address of a page with its parameters. Those that are ``None`` are left out."""
    query = urlencode({name: str(value) for name, value in given.items() if value is not None}, errors="surrogatepass")
    return f"/{page}?{query}" if query else f"/{page}"


def link(text: Any, page: str, **given: Any) -> Html:
    """Return a link to a page."""
    return element("a", text, href=address(page, **given))


def document(title: str, crumbs: Sequence[Any], *parts: Any) -> str:
    """Return a page. ``crumbs`` are the links to the pages above it, and its own name."""
    before, after = opening(title, crumbs)
    return f"{before}{join(parts)}{after}"


def opening(title: str, crumbs: Sequence[Any]) -> tuple[str, str]:
    """Return what is before and after the content of a page; ``crumbs`` as for :func:`document`."""
    head = join(
        [
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", f"{title} · statetool"),
            Html('<link rel="stylesheet" href="/style.css">'),
        ]
    )
    trail = element("ol", *(element("li", crumb) for crumb in crumbs), class_="crumbs")
    top = element("header", element("nav", trail, **{"aria-label": "pages above"}), element("h1", title))
    skip = element("a", "Skip to the content", href="#content", class_="skip")
    foot = element("footer", "Read only. Made by statetool.")
    begin = f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}<body class="statetool">{skip}{top}<main id="content">'
    return begin, f"</main>{foot}</body></html>\n"


def field(name: str, label: str, value: str | None, **more: Any) -> Html:
    """Return a text field with its label."""
    return element(
        "label", label, Html(element("input", name=name, value=value or "", **more).removesuffix("</input>"))
    )


def form(page: str, hidden: dict[str, str | None], *parts: Any, button: str) -> Html:
    """Return a form that opens a page."""
    kept = [
        Html(element("input", type="hidden", name=name, value=value).removesuffix("</input>"))
        for name, value in hidden.items()
        if value is not None
    ]
    return element("form", *kept, *parts, element("button", button), action=f"/{page}", method="get")
