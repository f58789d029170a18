"""Style of the page: light or dark according to the reader's system, from the width of a phone upwards."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --text: #1c2430; --soft: #5b6675; --back: #fff; --card: #f4f6f9; --line: #d9dfe7;
  --mark: #2563b8; --bad: #b3261e; --warn: #8a5a00; --good: #1d7a3e; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ee; --soft: #9aa6b5; --back: #14181f; --card: #1d232c; --line: #333c49;
  --mark: #6ea8f7; --bad: #ff8a80; --warn: #f2c14e; --good: #6fd08c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 90rem; background: var(--back); color: var(--text);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; } h3 { font-size: 1rem; margin: 1rem 0 .3rem; }
h1, h2, h3, p, li, td, summary { overflow-wrap: anywhere; }
p { margin: .3rem 0; max-width: 65rem; } .soft, caption { color: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .2rem .9rem; margin: .8rem 0; } a { color: var(--mark); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
dl > div { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .5rem .75rem; }
dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-size: 1.15rem; font-weight: 600; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: .28rem .8rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { min-width: 6rem; max-width: 32rem; } td:has(> data:only-child) { min-width: 0; } .long { min-width: 18rem; } data { white-space: nowrap; }
svg { display: block; fill: var(--mark); } .bar { width: 9rem; height: .8rem; margin-top: .2rem; background: var(--card); }
.columns, .line { width: 14rem; height: 2rem; background: var(--card); }
.line { fill: none; stroke: var(--mark); stroke-width: 2; } .line polyline { vector-effect: non-scaling-stroke; }
.heat { width: 100%; max-width: 64rem; } .heat .empty { fill: var(--line); opacity: .45; }
summary { cursor: pointer; padding: .3rem 0; } .bad { color: var(--bad); } .warn { color: var(--warn); } .good { color: var(--good); }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media print { nav { display: none; } }
"""
