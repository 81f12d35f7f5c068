"""One page for each experiment, as Markdown and as HTML, with its pictures and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dropin import __version__
from dropin.experiments.collected import Collected
from dropin.experiments.items import Item
from dropin.experiments.outcome import Chart, Outcome, Sheet
from dropin.experiments.runs import identity
from dropin.files import write, write_json
from dropin.render.charts import draw_heat_maps, draw_panels
from dropin.training.directory import versions

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; display: block;
        overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; }
img { max-width: 100%; }
.stamp { background: #fff3cd; padding: 0.5rem 1rem; }
.note { color: #555; font-size: 0.9rem; }
code { background: #f4f4f4; padding: 0.1rem 0.3rem; }
"""


@dataclass(frozen=True)
class _Part:
    """A part of a page: a heading, a paragraph, a table or a picture."""

    kind: str
    text: str = ""
    sheet: Sheet | None = None


def write_page(
    item: Item, outcome: Outcome, collected: Collected, command: str, directory: Path
) -> list[Path]:
    """Write the page with its pictures and its numbers; returns the files that people open."""
    stamp = collected.choices.stamp
    for chart in outcome.charts:
        _draw(chart, directory / f"{item.name}-{chart.name}.png", stamp)
    parts = _parts(item, outcome, collected, command)
    markdown, html = directory / f"{item.name}.md", directory / f"{item.name}.html"
    write(markdown, _markdown(parts).encode())
    write(html, _html(item, parts).encode())
    write_json(
        directory / f"{item.name}.json",
        {
            "experiment": item.name,
            "command": command,
            "small": stamp,
            "missing": [job.name for job in collected.missing],
            "numbers": outcome.numbers,
            "runs": [
                {"name": job.name, "identity": identity(job.config), "config": job.config.as_dict()}
                for job in collected.jobs
            ],
        },
    )
    return [markdown, html]


def _draw(chart: Chart, path: Path, stamp: str) -> None:
    if chart.maps:
        draw_heat_maps(chart.maps, path, stamp)
    else:
        draw_panels(chart.panels, path, stamp, chart.across, chart.shared)


def _parts(item: Item, outcome: Outcome, collected: Collected, command: str) -> list[_Part]:
    choices = collected.choices
    parts = [_Part("title", f"{item.title} ({item.where})")]
    if choices.stamp:
        parts.append(_Part("stamp", choices.stamp))
    missing = collected.missing
    if missing:
        some = ", ".join(job.name for job in missing[:6])
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        parts.append(_Part("stamp", f"Not all is there: {len(missing)} of {len(collected.jobs)}"
                                    f" runs are missing ({some}{more})."))  # fmt: skip
    parts += [
        _Part("text", f"Rules: {choices.rules}. Estimator of returns: {_estimator(collected)}."
                      f" Intervals are 95 %, {outcome.intervals}."),
        *(_Part("text", sentence) for sentence in outcome.sentences),
    ]  # fmt: skip
    for chart in outcome.charts:
        parts += [_Part("picture", f"{item.name}-{chart.name}.png"), _Part("note", chart.caption)]
    for sheet in outcome.sheets:
        parts.append(_Part("table", sheet.title, sheet))
        if sheet.note:
            parts.append(_Part("note", sheet.note))
    parts += [
        _Part("heading", "How it was made"),
        _Part("code", command),
        _Part("table", "Runs", _runs(collected)),
        _Part("note", f"Dropin {__version__}; {_packages()}. All settings of all runs are in"
                      f" {item.name}.json."),
    ]  # fmt: skip
    return parts


def _estimator(collected: Collected) -> str:
    known = {"fixed": "fixed", "legacy": "legacy, the authors' stopping rule"}
    return known[collected.choices.estimated]


def _packages() -> str:
    found = versions()
    return ", ".join(f"{name} {found[name]}" for name in ("python", "jax", "jaxlib"))


def _runs(collected: Collected) -> Sheet:
    rows = []
    for cell, runs in collected.cells.items():
        configs = [job.config for job in collected.jobs
                   if (job.grid, job.config.game, job.config.learner)
                   == (cell.grid, cell.game, cell.learner)]  # fmt: skip
        done = ", ".join(str(each.config.seed) for each in runs) or "none"
        rows.append((
            cell.game, cell.learner, cell.grid, f"{configs[0].steps:,}", done, str(len(configs)),
        ))  # fmt: skip
    return Sheet("Runs", ("game", "learner", "", "steps", "seeds that are done", "of"), rows)


def _markdown(parts: Sequence[_Part]) -> str:
    lines = []
    for part in parts:
        if part.kind == "title":
            lines.append(f"# {part.text}")
        elif part.kind == "heading":
            lines.append(f"## {part.text}")
        elif part.kind == "stamp":
            lines.append(f"**{part.text}**")
        elif part.kind == "picture":
            lines.append(f"![{part.text.removesuffix('.png')}]({part.text})")
        elif part.kind == "code":
            lines.append(f"```console\n$ {part.text}\n```")
        elif part.sheet is not None:
            lines.append(f"**{part.text}**\n\n{_markdown_table(part.sheet)}")
        else:
            lines.append(part.text)
    return "\n\n".join(lines) + "\n"


def _markdown_table(sheet: Sheet) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([row(sheet.columns), "|" + "---|" * len(sheet.columns), *map(row, sheet.rows)])


def _html(item: Item, parts: Sequence[_Part]) -> str:
    body = []
    for part in parts:
        text = escape(part.text)
        if part.kind == "title":
            body.append(f"<h1>{text}</h1>")
        elif part.kind == "heading":
            body.append(f"<h2>{text}</h2>")
        elif part.kind == "picture":
            body.append(f'<p><img src="{text}" alt="{text}"></p>')
        elif part.kind == "code":
            body.append(f"<p><code>$ {text}</code></p>")
        elif part.sheet is not None:
            body.append(f"<h3>{text}</h3>{_html_table(part.sheet)}")
        else:
            kind = f' class="{part.kind}"' if part.kind in ("stamp", "note") else ""
            body.append(f"<p{kind}>{text}</p>")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(item.title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _html_table(sheet: Sheet) -> str:
    def row(cells: Sequence[str], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{escape(str(cell))}</{kind}>" for cell in cells) + "</tr>"

    rows = "".join(row(each, "td") for each in sheet.rows)
    return f"<table><thead>{row(sheet.columns, 'th')}</thead><tbody>{rows}</tbody></table>"
