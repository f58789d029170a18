"""Style of the report: light or dark according to the reader's system, from the width of a phone upwards."""

from __future__ import annotations

from typing import Final

#: Cards and charts, in pages and notebooks.
REPORT_STYLE: Final = """
.statetool .cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); gap: .6rem; margin: .8rem 0; }
.statetool .cards > div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .4rem .7rem; }
.statetool .cards dt { color: var(--soft); font-size: .85rem; font-weight: 400; }
.statetool .cards dd { margin: 0; font-size: 1.1rem; font-weight: 600; }
.statetool h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
.statetool svg { display: block; fill: var(--mark); }
.statetool .bar { width: 8rem; height: .5rem; margin-top: .15rem; background: var(--card); }
.statetool .number .bar { margin-left: auto; }
.statetool .columns, .statetool .line { width: 14rem; max-width: 100%; height: 2rem; background: var(--card); }
.statetool .line { fill: none; stroke: var(--mark); stroke-width: 2; } .statetool .line polyline { vector-effect: non-scaling-stroke; }
.statetool .heat { width: 100%; max-width: 64rem; } .statetool .heat .empty { fill: var(--line); opacity: .6; }
"""
#: The document around them.
PAGE_STYLE: Final = """
:root { color-scheme: light dark; --text: #1c2430; --back: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --back: #14181f; } }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; background: var(--back); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; margin: .8rem 0; } a { color: var(--mark); }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) { .statetool tr > :first-child { position: sticky; left: 0; background: var(--back); max-width: 45vw;
  overflow-wrap: anywhere; min-width: 6rem; } }
@media print { nav { display: none; } }
"""
