"""Style of the explorer: that of the report, and what only pages with forms and links need."""

from __future__ import annotations

from typing import Final

from statetool.html.style import STYLE
from statetool.reporting.report.style import PAGE_STYLE, REPORT_STYLE

_OWN: Final = """
.skip { position: absolute; left: -100rem; } .skip:focus { position: static; }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
.statetool .crumbs { display: flex; flex-wrap: wrap; gap: .1rem .5rem; margin: 0 0 .6rem; padding: 0; list-style: none; }
.statetool .crumbs li + li::before { content: "/"; margin-right: .5rem; color: var(--soft); }
.statetool form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin: .8rem 0; }
.statetool label { display: grid; gap: .15rem; font-size: .85rem; color: var(--soft); flex: 0 1 18rem; }
.statetool label.wide { flex-basis: 100%; }
.statetool input, .statetool textarea, .statetool select, .statetool button { font: inherit; color: var(--text); background: var(--back);
  border: 1px solid var(--soft); border-radius: .3rem; padding: .35rem .6rem; max-width: 100%; }
.statetool textarea { font-family: ui-monospace, monospace; min-height: 6rem; width: 100%; }
.statetool button { cursor: pointer; background: var(--card); font-weight: 600; }
.statetool .value dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .2rem 0 .2rem .8rem; }
.statetool .value dt { color: var(--soft); font-weight: 400; } .statetool .value dd { margin: 0; overflow-wrap: anywhere; }
.statetool td { overflow-wrap: anywhere; min-width: 4rem; }
.statetool .added { color: var(--good); } .statetool .removed { color: var(--bad); } .statetool .changed { color: var(--warn); }
.statetool .pages { display: flex; flex-wrap: wrap; gap: .8rem; margin: .8rem 0; }
.statetool .timeline { width: 100%; height: 5rem; background: var(--card); } .statetool .timeline .bad { fill: var(--bad); }
"""
SHEET: Final = STYLE + REPORT_STYLE + PAGE_STYLE + _OWN
