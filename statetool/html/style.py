"""Style of all HTML. Every color derives from the text color of the surrounding page, so it fits light and dark notebooks and pages."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
.statetool { --soft: color-mix(in srgb, currentColor 70%, transparent); --line: color-mix(in srgb, currentColor 18%, transparent);
  --card: color-mix(in srgb, currentColor 5%, transparent); --mark: color-mix(in srgb, #3b82f6 80%, currentColor);
  --bad: color-mix(in srgb, #e5484d 75%, currentColor); --warn: color-mix(in srgb, #d18b00 65%, currentColor);
  --good: color-mix(in srgb, #2a9d4f 75%, currentColor); line-height: 1.45; margin: .5rem 0; }
.statetool * { box-sizing: border-box; }
.statetool h1, .statetool h2, .statetool h3, .statetool p, .statetool li, .statetool summary { overflow-wrap: anywhere; }
.statetool p { margin: .3rem 0; max-width: 65rem; } .statetool .soft, .statetool caption { color: var(--soft); }
.statetool caption { text-align: left; padding-bottom: .3rem; }
.statetool .scroll { overflow-x: auto; }
.statetool table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; margin: 0; }
.statetool th, .statetool td { text-align: left; padding: .28rem 1.1rem .28rem 0; border: 0 solid var(--line); border-bottom-width: 1px;
  vertical-align: top; background: none; max-width: 32rem; }
.statetool th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
.statetool .number { text-align: right; } .statetool td.word { overflow-wrap: anywhere; min-width: 9rem; }
.statetool td.long { overflow-wrap: anywhere; min-width: 16rem; }
.statetool data, .statetool time { white-space: nowrap; }
.statetool summary { cursor: pointer; padding: .3rem 0; }
.statetool .bad { color: var(--bad); } .statetool .warn { color: var(--warn); } .statetool .good { color: var(--good); }
.statetool .finding { border-left: .25rem solid var(--line); background: var(--card); border-radius: .25rem; padding: .4rem .8rem;
  margin: .6rem 0; max-width: 65rem; }
.statetool .finding.error { border-color: var(--bad); } .statetool .finding.unknown, .statetool .finding.warning,
.statetool .finding.difference { border-color: var(--warn); } .statetool .finding.advice { border-color: var(--mark); }
.statetool .finding p { margin: .15rem 0; } .statetool .finding b { font-weight: 600; }
.statetool .finding dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .8rem; margin: .3rem 0; font-size: .87rem; }
.statetool .finding dt { color: var(--soft); font-weight: 400; white-space: pre; } .statetool .finding dd { margin: 0; overflow-wrap: anywhere; }
.statetool pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .35rem 0 .15rem; padding: .35rem .6rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .25rem; font: .85rem/1.4 ui-monospace, monospace; color: inherit; }
"""
