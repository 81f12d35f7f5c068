"""The page of an experiment: Markdown and HTML for people, JSON for programs, and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dropin import __version__
from dropin.core.config import PlainDict
from dropin.core.files import write, write_json
from dropin.core.specs import ExperimentSpec
from dropin.experiments.planning import Job, Progress, identity, rules_of
from dropin.experiments.results import (
    Chart,
    CompletedRuns,
    ExperimentResult,
    Sheet,
    format_seeds,
)
from dropin.plots.charts import draw_heat_maps, draw_panels
from dropin.training.provenance import machine, versions
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import write_table

__all__ = ["write_page"]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; display: block;
        overflow-x: auto; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: left; }
img { max-width: 100%; }
.notice { background: #fff3cd; padding: 0.5rem 1rem; }
.note { color: #555; font-size: 0.9rem; }
code { background: #f4f4f4; padding: 0.1rem 0.3rem; }
"""
ESTIMATORS = {"fixed": "fixed", "legacy": "legacy, the authors' stopping rule"}
MAX_MISSING_NAMES = 6


@dataclass(frozen=True)
class _Block:
    """A block of a page, to be written as Markdown and as HTML."""

    kind: str
    """`title`, `heading`, `notice`, `text`, `note`, `picture`, `code` or `table`."""
    text: str
    sheet: Sheet | None = None
    """The content of a table."""


def write_page(
    spec: ExperimentSpec,
    result: ExperimentResult,
    runs: CompletedRuns,
    command: str,
    directory: Path,
) -> list[Path]:
    """Write the page of an experiment with its pictures and numbers.

    Args:
        spec: The experiment.
        result: What it has found.
        runs: The runs it is made from.
        command: The command that makes the page, shown on it.
        directory: Where to write the files.

    Returns:
        The files that people open: the page as Markdown and as HTML.
    """
    notice = runs.options.small_notice
    for chart in result.all_charts:
        _draw(chart, directory / _picture_name(spec, chart), notice)
    blocks = _blocks(spec, result, runs, command)
    markdown, html = directory / f"{spec.name}.md", directory / f"{spec.name}.html"
    write(markdown, _markdown(blocks).encode())
    write(html, _html(spec.title, blocks).encode())
    write_json(
        directory / f"{spec.name}.json",
        {
            "experiment": spec.name,
            "command": command,
            "small": notice,
            "missing": [job.name for job in runs.missing],
            "numbers": result.numbers,
            "made with": {"versions": versions(), "machine": machine()},
            "runs": [_about(job) for job in runs.jobs],
        },
    )
    if result.records:
        write_table(directory / f"{spec.name}.csv", result.records)
    return [markdown, html]


def _about(job: Job) -> PlainDict:
    """Return all that is known of a run, as plain values."""
    ran_on = RunDirectory(job.run.path).ran_on() if job.progress is Progress.DONE else {}
    return {
        "name": job.name,
        "identity": identity(job.config),
        "progress": job.progress.value,
        **ran_on,
        "config": job.run.config.to_dict(),
    }


def _picture_name(spec: ExperimentSpec, chart: Chart) -> str:
    return f"{spec.name}-{chart.name}.png"


def _draw(chart: Chart, path: Path, notice: str) -> None:
    if chart.heat_maps:
        draw_heat_maps(chart.heat_maps, path, note=notice)
    else:
        draw_panels(
            chart.panels, path, note=notice, columns=chart.columns, share_axes=chart.share_axes
        )


def _blocks(
    spec: ExperimentSpec, result: ExperimentResult, runs: CompletedRuns, command: str
) -> list[_Block]:
    """Return the content of the page from top to bottom."""
    options = runs.options
    source = f" ({spec.source})" if spec.source else ""
    blocks = [_Block("title", f"{spec.title or spec.name}{source}")]
    if options.small_notice:
        blocks.append(_Block("notice", options.small_notice))
    if runs.missing:
        blocks.append(_Block("notice", _missing_sentence(runs)))
    estimator = ESTIMATORS[options.chosen_estimator]
    blocks += [
        _Block("text", f"Rules: {rules_of(runs.jobs)}. Estimator of returns: {estimator}."
                       f" Intervals are 95 %, {result.intervals}."),
        *_content(spec, result),
    ]  # fmt: skip
    return [
        *blocks,
        _Block("heading", "How it was made"),
        _Block("code", command),
        *_sheet_blocks(_runs_sheet(runs)),
        _Block("note", f"Dropin {__version__}; {_packages()}. All settings of all runs are in"
                       f" {spec.name}.json."),
    ]  # fmt: skip


def _content(spec: ExperimentSpec, result: ExperimentResult) -> list[_Block]:
    """Return what a result shows: notes, charts, tables, and then its sections."""
    blocks = [_Block("heading", result.title)] if result.title else []
    blocks += [_Block("text", note) for note in result.notes]
    for chart in result.charts:
        blocks += [_Block("picture", _picture_name(spec, chart)), _Block("note", chart.caption)]
    for sheet in result.sheets:
        blocks += _sheet_blocks(sheet)
    return blocks + [block for section in result.sections for block in _content(spec, section)]


def _sheet_blocks(sheet: Sheet) -> list[_Block]:
    """Return a table and its note."""
    note = [_Block("note", sheet.note)] if sheet.note else []
    return [_Block("table", sheet.title, sheet), *note]


def _missing_sentence(runs: CompletedRuns) -> str:
    missing = runs.missing
    names = ", ".join(job.name for job in missing[:MAX_MISSING_NAMES])
    more = len(missing) - MAX_MISSING_NAMES
    rest = f" and {more} more" if more > 0 else ""
    return f"Incomplete: {len(missing)} of {len(runs.jobs)} runs are missing ({names}{rest})."


def _packages() -> str:
    found = versions()
    return ", ".join(f"{name} {found[name]}" for name in ("python", "jax", "jaxlib"))


def _runs_sheet(runs: CompletedRuns) -> Sheet:
    """Return the table of runs: a row for each grid, game and learner."""
    rows = []
    for group, done in runs.groups.items():
        of = [
            job
            for job in runs.jobs
            if (job.grid, job.config.game, job.config.learner)
            == (group.grid, group.game, group.learner)
        ]
        missing = [job.config.seed for job in of if job.progress is not Progress.DONE]
        seeds = format_seeds(run.config.seed for run in done)
        about = (group.game, group.learner, group.grid, f"{of[0].config.steps:,}")
        rows.append((*about, seeds or "none", format_seeds(missing) or "none"))
    columns = ("game", "learner", "", "steps", "finished seeds", "missing seeds")
    failed = [f"{name} failed: {reason}" for name, reason in runs.failures.items()]
    return Sheet("Runs", columns, rows, " ".join(failed))


def _markdown(blocks: Sequence[_Block]) -> str:
    parts = []
    for block in blocks:
        text = block.text
        match block.kind:
            case "title":
                parts.append(f"# {text}")
            case "heading":
                parts.append(f"## {text}")
            case "notice":
                parts.append(f"**{text}**")
            case "picture":
                parts.append(f"![{text.removesuffix('.png')}]({text})")
            case "code":
                parts.append(f"```console\n$ {text}\n```")
            case "table" if block.sheet:
                parts.append(f"**{text}**\n\n{_markdown_table(block.sheet)}")
            case _:
                parts.append(text)
    return "\n\n".join(parts) + "\n"


def _markdown_table(sheet: Sheet) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([row(sheet.columns), "|" + "---|" * len(sheet.columns), *map(row, sheet.rows)])


def _html(title: str, blocks: Sequence[_Block]) -> str:
    parts = []
    for block in blocks:
        text = escape(block.text)
        match block.kind:
            case "title":
                parts.append(f"<h1>{text}</h1>")
            case "heading":
                parts.append(f"<h2>{text}</h2>")
            case "picture":
                parts.append(f'<p><img src="{text}" alt="{text}"></p>')
            case "code":
                parts.append(f"<p><code>$ {text}</code></p>")
            case "table" if block.sheet:
                parts.append(f"<h3>{text}</h3>{_html_table(block.sheet)}")
            case "notice" | "note":
                parts.append(f'<p class="{block.kind}">{text}</p>')
            case _:
                parts.append(f"<p>{text}</p>")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _html_table(sheet: Sheet) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    rows = "".join(row(cells, "td") for cells in sheet.rows)
    return f"<table><thead>{row(sheet.columns, 'th')}</thead><tbody>{rows}</tbody></table>"
