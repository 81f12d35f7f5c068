"""Pages of tables, charts and notes: Markdown and HTML with the same content, and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from dropin.core.files import write
from dropin.experiments.results import Chart, ExperimentResult, Sheet
from dropin.plots.charts import draw_heat_maps, draw_panels

__all__ = ["Block", "content", "sheet_blocks", "write_blocks"]

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


@dataclass(frozen=True)
class Block:
    """A block of a page, to be written as Markdown and as HTML."""

    kind: str
    """`title`, `heading`, `notice`, `text`, `note`, `picture`, `code`, `link` or `table`."""
    text: str
    sheet: Sheet | None = None
    """The content of a table."""
    target: str = ""
    """The name of the page that a link leads to, without an ending."""


def write_blocks(
    name: str,
    title: str,
    blocks: Sequence[Block],
    result: ExperimentResult,
    directory: Path,
    notice: str = "",
) -> list[Path]:
    """Write a page as Markdown and as HTML, with the pictures of its charts.

    Args:
        name: The name of the files, without an ending.
        title: The title of the HTML page.
        blocks: The content from top to bottom.
        result: What the page shows; its charts are drawn.
        directory: Where to write the files.
        notice: A line above every chart.

    Returns:
        The page as Markdown and as HTML.
    """
    for chart in result.all_charts:
        _draw(chart, directory / _picture_name(name, chart), notice)
    markdown, html = directory / f"{name}.md", directory / f"{name}.html"
    write(markdown, _markdown(blocks).encode())
    write(html, _html(title, blocks).encode())
    return [markdown, html]


def content(name: str, result: ExperimentResult) -> list[Block]:
    """Return what a result shows: notes, charts, tables, and then its sections.

    Args:
        name: The name of the page, which those of its pictures start with.
        result: The result.
    """
    blocks = [Block("heading", result.title)] if result.title else []
    blocks += [Block("text", note) for note in result.notes]
    for chart in result.charts:
        blocks += [Block("picture", _picture_name(name, chart)), Block("note", chart.caption)]
    for sheet in result.sheets:
        blocks += sheet_blocks(sheet)
    return blocks + [block for section in result.sections for block in content(name, section)]


def sheet_blocks(sheet: Sheet) -> list[Block]:
    """Return a table and its note."""
    note = [Block("note", sheet.note)] if sheet.note else []
    return [Block("table", sheet.title, sheet), *note]


def _picture_name(name: str, chart: Chart) -> str:
    return f"{name}-{chart.name}.png"


def _draw(chart: Chart, path: Path, notice: str) -> None:
    if chart.heat_maps:
        draw_heat_maps(chart.heat_maps, path, note=notice)
    else:
        draw_panels(
            chart.panels, path, note=notice, columns=chart.columns, share_axes=chart.share_axes
        )


def _markdown(blocks: Sequence[Block]) -> str:
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
            case "link":
                parts.append(f"[{text}]({block.target}.md)")
            case "table" if block.sheet:
                parts.append(f"**{text}**\n\n{_markdown_table(block.sheet)}")
            case _:
                parts.append(text)
    return "\n\n".join(parts) + "\n"


def _markdown_table(sheet: Sheet) -> str:
    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([row(sheet.columns), "|" + "---|" * len(sheet.columns), *map(row, sheet.rows)])


def _html(title: str, blocks: Sequence[Block]) -> str:
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
            case "link":
                parts.append(f'<p><a href="{escape(block.target)}.html">{text}</a></p>')
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
