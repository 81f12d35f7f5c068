"""Tables in the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

_WIDE = 160


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> None:
    """Print a table; the last so many columns are numbers. Pipes and logs get whole lines."""
    grid = Table(box=None, pad_edge=False)
    for place, column in enumerate(columns):
        number = place >= len(columns) - numbers
        grid.add_column(column, justify="right" if number else "left", no_wrap=place == 0 or number)
    for row in rows:
        grid.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(grid)
