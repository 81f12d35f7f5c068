"""Tables in the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["show_table"]

_WIDTH_OF_PIPES = 160


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> None:
    """Print a table. In pipes and logs its lines are not wrapped to the width of a terminal.

    Args:
        columns: The headings.
        rows: The cells of each row.
        numbers: How many columns, counted from the last, hold numbers: these are aligned right.
    """
    table = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        is_number = index >= len(columns) - numbers
        justify = "right" if is_number else "left"
        table.add_column(column, justify=justify, no_wrap=index == 0 or is_number)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_PIPES)
    console.print(table)
