"""Reporters: how the progress of a run is shown while it trains."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from dropin.core.config import PlainDict, PlainMapping
from dropin.core.errors import unknown
from dropin.training.config import STRANGERS

__all__ = [
    "Board",
    "Json",
    "Lines",
    "OneOfSeveral",
    "Pace",
    "Reporter",
    "check_screen",
    "clock",
    "evaluation_text",
    "parse_message",
    "screen_reporter",
]

Row = PlainMapping
"""Metrics or an evaluation, by the names of the columns; None where there is no value."""
COMMON = ("step", "episodes", "return", "team_size")
"""Columns of metrics that every learner has, shown in their own way."""
MEASURED = (
    "step",
    "team_limit",
    "teammates",
    "mode",
    "episodes",
    "mean_return",
    "ci_low",
    "ci_high",
    "legacy_mean_return",
    "unshaped_mean_return",
)
"""Columns of every evaluation; a game may add some."""


class Reporter(AbstractContextManager["Reporter"]):
    """Receives every row of metrics and every evaluation of a run; this one does nothing."""

    def begin(self, title: str, step: int, steps: int) -> None:
        """Note that a run starts, or continues, at a step.

        Args:
            title: What the run is called.
            step: The step it starts at.
            steps: The step it ends at.
        """

    def metrics(self, row: Row) -> None:
        """Receive the metrics of a few thousand steps."""

    def evaluation(self, row: Row) -> None:
        """Receive an evaluation of the agent at a checkpoint."""

    def say(self, sentence: str) -> None:
        """Receive a message for the user."""

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Receive what one of several runs reports.

        By default it is received as if there were one run only; rows have the name of the run in
        `run`.

        Args:
            run: The name of that run.
            message: What `Json` prints for it.
        """
        kind, values = parse_message(message)
        if kind in ("metrics", "evaluation"):
            getattr(self, kind)({"run": run, **values})
        elif kind == "say":
            self.say(f"{run}: {values['sentence']}")
        elif kind == "begin":
            self.begin(f"{run}: {values['title']}", values["step"], values["steps"])

    def __exit__(self, *error: object) -> None:
        """Note that the run has ended."""


def parse_message(message: PlainMapping) -> tuple[str, PlainDict]:
    """Return the kind of a message of `Json`, and what the method of that name is called with."""
    values = {name: each for name, each in message.items() if name not in ("kind", "rate", "left")}
    return message["kind"], values


class Pace:
    """Measures steps per second over the last rows, and the time left.

    The time before the first row is not counted, since it goes to compilation.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.observation: list[tuple[float, int]] = []

    def update(self, step: int) -> tuple[float, str]:
        """Return steps per second and the time left, having come to a step."""
        self.observation = [*self.observation[-20:], (time.monotonic(), step)]
        (first, before), (last, _) = self.observation[0], self.observation[-1]
        if last == first:
            return 0.0, "?"
        rate = (step - before) / (last - first)
        return rate, clock((self.steps - step) / rate)


def clock(seconds: float) -> str:
    """Return a time span as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _number(value: Any, digits: int = 2) -> str:
    """Return a number as text, or a dash if there is none."""
    return "-" if value is None or value == "" else f"{value:.{digits}f}"


def _others(row: Row, known: Sequence[str]) -> dict[str, str]:
    """Return the columns of a row that are not known, by readable name."""
    others = (name for name in row if name not in known)
    return {name.replace("_", " "): _number(row[name], _digits(name)) for name in others}


def _digits(name: str) -> int:
    return 4 if name.endswith("loss") else 2


def _listed(values: Mapping[str, str]) -> str:
    return "".join(f", {name} {value}" for name, value in values.items())


def evaluation_text(row: Row) -> str:
    """Return an evaluation as one line."""
    unshaped = row["unshaped_mean_return"]
    among = "" if row["teammates"] == STRANGERS else f", with {row['teammates']}"
    return (
        f"step {row['step']:,}, {row['mode']}, team limit {row['team_limit']}{among}: return"
        f" {row['mean_return']:.2f} ({row['ci_low']:.2f} to {row['ci_high']:.2f})"
        f"{'' if unshaped is None else f', unshaped {unshaped:.2f}'}"
        f"{_listed(_others(row, MEASURED))}"
    )


class Lines(Reporter):
    """Prints a line now and then, for logs and pipes.

    Args:
        file: Where to print; standard output by default.
        seconds: Least time between two lines of metrics.
    """

    def __init__(self, file: TextIO | None = None, seconds: float = 10.0):
        self.file, self.seconds, self.printed = file or sys.stdout, seconds, 0.0

    def begin(self, title: str, step: int, steps: int) -> None:
        """Print the first line."""
        self.pace = Pace(steps)
        self.say(f"{title}, from step {step:,} to {steps:,}")

    def metrics(self, row: Row) -> None:
        """Print a line, unless there was one shortly before."""
        rate, left = self.pace.update(row["step"])
        now = time.monotonic()
        if now - self.printed < self.seconds and row["step"] < self.pace.steps:
            return
        self.printed = now
        self.say(
            f"step {row['step']:,}: {rate:,.0f} a second, {left} left, return"
            f" {_number(row.get('return'))}{_listed(_others(row, COMMON))}, team size"
            f" {_number(row.get('team_size'))}"
        )

    def evaluation(self, row: Row) -> None:
        """Print a line."""
        self.say(evaluation_text(row))

    def say(self, sentence: str) -> None:
        """Print a line."""
        print(sentence, file=self.file, flush=True)

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Print starts, evaluations and messages of a run, but not its metrics."""
        kind, values = parse_message(message)
        if kind == "evaluation":
            self.say(f"{run}: {evaluation_text(values)}")
        elif kind != "metrics":
            self.say(f"{run}: {values['title' if kind == 'begin' else 'sentence']}")


class Json(Reporter):
    """Prints a line of JSON for everything, for a process that watches this one."""

    def begin(self, title: str, step: int, steps: int) -> None:
        """Print the start of a run."""
        self.pace = Pace(steps)
        self._print(kind="begin", title=title, step=step, steps=steps)

    def metrics(self, row: Row) -> None:
        """Print a row of metrics with the pace."""
        rate, left = self.pace.update(row["step"])
        self._print(kind="metrics", rate=rate, left=left, **row)

    def evaluation(self, row: Row) -> None:
        """Print an evaluation."""
        self._print(kind="evaluation", **row)

    def say(self, sentence: str) -> None:
        """Print a message."""
        self._print(kind="say", sentence=sentence)

    def _print(self, **values: Any) -> None:
        print(json.dumps(values), flush=True)

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Print the message with the name of its run."""
        self._print(run=run, **message)


IDLE = ("waiting", "done", "saved")
MAX_ROWS = 16
"""If there are more runs, those that are idle are only counted."""
_STATUS = ("steps", "state", "rate", "left")
"""What a board knows of a run besides its metrics."""


class Board(Reporter):
    """A live table in the terminal, with one row for every run that is training."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console()
        self.rows: dict[str, PlainDict] = {}
        self.live = Live(console=self.console, refresh_per_second=4, transient=False)
        self.name = "run"

    def __enter__(self) -> "Board":
        """Start drawing."""
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop drawing; the last state stays."""
        self.live.stop()

    def begin(self, title: str, step: int, steps: int) -> None:
        """Show the only run."""
        self.pace = Pace(steps)
        self.name = title
        self.show(title, step=step, steps=steps, state="compiling")

    def metrics(self, row: Row) -> None:
        """Show the metrics of the only run."""
        rate, left = self.pace.update(row["step"])
        self.show(self.name, rate=rate, left=left, state="", **row)

    def evaluation(self, row: Row) -> None:
        """Print the evaluation above the table."""
        self.say(evaluation_text(row))

    def say(self, sentence: str) -> None:
        """Print a message above the table."""
        self.live.console.print(sentence, highlight=False)

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Show the metrics in the row of the run, and print the rest above the table."""
        kind, values = parse_message(message)
        if kind == "evaluation":
            self.say(f"{run}: {evaluation_text(values)}")
        elif kind == "say":
            self.say(f"{run}: {values['sentence']}")
        elif kind == "begin":
            self.show(run, step=values["step"], steps=values["steps"], state="compiling")
        else:
            self.show(run, rate=message["rate"], left=message["left"], state="", **values)

    def show(self, name: str, **values: Any) -> None:
        """Update what is shown of a run.

        Args:
            name: The name of the run.
            **values: Columns of metrics, or steps, state, rate and left.
        """
        self.rows[name] = {**self.rows.get(name, {}), **values}
        self.live.update(self._draw())

    def _draw(self) -> Group:
        idle = [row["state"] for row in self.rows.values() if row.get("state") in IDLE]
        many = len(self.rows) > MAX_ROWS
        shown = {
            name: row
            for name, row in self.rows.items()
            if not (many and row.get("state") in IDLE) and not _failed(row)
        }
        counts = [f"{idle.count(state)} {state}" for state in IDLE if state in idle]
        head = [Text(f"{len(self.rows)} runs: {', '.join(counts)}")] if many and counts else []
        failures = [
            Text(f"{name} {row['state']}", style="red")
            for name, row in self.rows.items()
            if _failed(row)
        ]
        return Group(*head, self._table(shown), *failures)

    def _table(self, rows: Mapping[str, Row]) -> Grid:
        grid = Grid(box=None, pad_edge=False)
        others = {name: _others(row, (*COMMON, *_STATUS)) for name, row in rows.items()}
        names = list(dict.fromkeys(column for each in others.values() for column in each))
        columns = ("run", "", "step", "steps/s", "left", "return", "team size", *names)
        for column in columns:
            grid.add_column(column, justify="left" if column in ("run", "") else "right")
        for name, row in rows.items():
            step, steps = row.get("step", 0), row.get("steps", 1)
            cells: list[Any] = [name, ProgressBar(total=steps, completed=step, width=16)]
            cells.append(f"{step:,}")
            if row.get("state"):
                cells += [Text(row["state"], style="dim")]
            elif "rate" in row:
                cells += [f"{row['rate']:,.0f}", row["left"], _number(row.get("return"))]
                cells += [_number(row.get("team_size"))]
                cells += [others[name].get(column, "") for column in names]
            grid.add_row(*cells)
        return grid


def _failed(row: Row) -> bool:
    return str(row.get("state", "")).startswith("failed")


class OneOfSeveral(Json):
    """The reporter of one run among several that train in this process.

    Args:
        reporter: The reporter of all of them.
        run: The name of the run.
    """

    def __init__(self, reporter: Reporter, run: str):
        self.reporter, self.run = reporter, run

    def _print(self, **values: Any) -> None:
        self.reporter.pass_on(self.run, values)


SCREENS = ("auto", "lines", "json", "none")


def check_screen(kind: str) -> None:
    """Raise `InputError` for a way to report that does not exist."""
    if kind not in SCREENS:
        raise unknown("report", kind, SCREENS)


def screen_reporter(kind: str | Reporter) -> Reporter:
    """Return the reporter for the screen.

    Args:
        kind: "auto" (a live table in a terminal, lines elsewhere), "lines", "json", "none", or a
            reporter, which is returned as it is.
    """
    if isinstance(kind, Reporter):
        return kind
    check_screen(kind)
    if kind == "auto":
        return Board() if Console().is_terminal else Lines()
    return {"lines": Lines, "json": Json, "none": Reporter}[kind]()
