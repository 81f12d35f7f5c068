"""Who is told how a run goes, while it goes."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from dropin.errors import MissingExtraError, unknown
from dropin.files import read_json
from dropin.training.table import AMONG, EVALUATION, METRICS

Row = Mapping[str, Any]


class Reporter(AbstractContextManager["Reporter"]):
    """Is told of every row of metrics and of every evaluation; this one does nothing."""

    def begin(self, title: str, step: int, steps: int) -> None:
        """A run starts, or goes on, at a step."""

    def metrics(self, row: Row) -> None:
        """Of a few thousand steps."""

    def evaluation(self, row: Row) -> None:
        """Of the agent at a checkpoint."""

    def say(self, sentence: str) -> None:
        """Something to know."""

    def __exit__(self, *error: object) -> None:
        """The run is over."""


class Pace:
    """Steps a second over the last rows, and the time left.

    The time before the first row is not counted, since it goes to compiling.
    """

    def __init__(self, steps: int):
        self.steps = steps
        self.seen: list[tuple[float, int]] = []

    def tell(self, step: int) -> tuple[float, str]:
        """The pace, and the time left at this pace, having come to a step."""
        self.seen = [*self.seen[-20:], (time.monotonic(), step)]
        (first, before), (last, _) = self.seen[0], self.seen[-1]
        if last == first:
            return 0.0, "?"
        rate = (step - before) / (last - first)
        return rate, clock((self.steps - step) / rate)


def clock(seconds: float) -> str:
    """A time span as people write it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def extras(row: Row, known: Sequence[str]) -> dict[str, str]:
    """What the game adds to a row, by name."""
    return {name.replace("_", " "): _shown(row[name]) for name in row if name not in known}


def _listed(more: Mapping[str, str]) -> str:
    return "".join(f", {name} {value}" for name, value in more.items())


def _shown(value: Any, digits: int = 2) -> str:
    """A number, or a dash if there is none."""
    return "-" if value == "" else f"{value:.{digits}f}"


def evaluation_text(row: Row) -> str:
    """An evaluation in a line."""
    unshaped = f", unshaped {row['unshaped']:.2f}" if row["unshaped"] != "" else ""
    among = f", among {row[AMONG]}" if AMONG in row else ""
    return (
        f"step {row['step']:,}, {row['policy']}, team limit {row['team_limit']}{among}: return"
        f" {row['mean']:.2f} ({row['low']:.2f} to {row['high']:.2f}){unshaped}"
        f"{_listed(extras(row, (*EVALUATION, AMONG)))}"
    )


def evaluation_name(row: Row) -> str:
    """What to call an evaluation among scalars."""
    among = f"_{row[AMONG]}" if AMONG in row else ""
    return f"evaluation/limit_{row['team_limit']}_{row['policy']}{among}"


class Lines(Reporter):
    """A line now and then, for logs and pipes."""

    def __init__(self, file: TextIO | None = None, seconds: float = 10.0):
        self.file, self.seconds, self.told = file or sys.stdout, seconds, 0.0

    def begin(self, title: str, step: int, steps: int) -> None:
        """The first line."""
        self.pace = Pace(steps)
        self.say(f"{title}, from step {step:,} to {steps:,}")

    def metrics(self, row: Row) -> None:
        """A line, unless there was one shortly before."""
        rate, left = self.pace.tell(row["step"])
        now = time.monotonic()
        if now - self.told < self.seconds and row["step"] < self.pace.steps:
            return
        self.told = now
        predicted = ""
        if row["prediction_loss"] != "":
            predicted = f", prediction loss {row['prediction_loss']:.3f}, accuracy"
            predicted += f" {row['accuracy']:.2f}"
        self.say(
            f"step {row['step']:,}: {rate:,.0f} a second, {left} left, return"
            f" {_shown(row['return'])}, value loss {row['value_loss']:.4f}{predicted}, epsilon"
            f" {row['epsilon']:.2f}, team {row['team_size']:.2f}{_listed(extras(row, METRICS))}"
        )

    def evaluation(self, row: Row) -> None:
        """A line."""
        self.say(evaluation_text(row))

    def say(self, sentence: str) -> None:
        """A line."""
        print(sentence, file=self.file, flush=True)


class Json(Reporter):
    """A line of JSON for everything, for a process that watches this one."""

    def begin(self, title: str, step: int, steps: int) -> None:
        """The first line."""
        self.pace = Pace(steps)
        self._print(kind="begin", title=title, step=step, steps=steps)

    def metrics(self, row: Row) -> None:
        """A row with the pace."""
        rate, left = self.pace.tell(row["step"])
        self._print(kind="metrics", rate=rate, left=left, **row)

    def evaluation(self, row: Row) -> None:
        """A row."""
        self._print(kind="evaluation", **row)

    def say(self, sentence: str) -> None:
        """A sentence."""
        self._print(kind="say", sentence=sentence)

    def _print(self, **values: Any) -> None:
        print(json.dumps(values), flush=True)

    def pass_on(self, run: str, message: Mapping[str, Any]) -> None:
        """What the process of a run has said."""
        self._print(run=run, **message)


SHOWN = ("steps", "state", "rate", "left")
"""What a board knows of a run besides its metrics."""
IDLE = ("waiting", "done", "saved")
MOST_ROWS = 16
"""If there are more runs, those that are idle are only counted."""


class Board(Reporter):
    """A live table in the terminal, one row for every run that is going."""

    def __init__(self, console: Console | None = None):
        self.console = console or Console()
        self.rows: dict[str, dict[str, Any]] = {}
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
        """The only run."""
        self.pace = Pace(steps)
        self.name = title
        self.show(title, step=step, steps=steps, state="compiling")

    def metrics(self, row: Row) -> None:
        """Of the only run."""
        rate, left = self.pace.tell(row["step"])
        self.show(self.name, rate=rate, left=left, state="", **row)

    def evaluation(self, row: Row) -> None:
        """Printed above the table."""
        self.say(evaluation_text(row))

    def say(self, sentence: str) -> None:
        """Printed above the table."""
        self.live.console.print(sentence, highlight=False)

    def show(self, name: str, **values: Any) -> None:
        """What is known of a run now."""
        self.rows[name] = {**self.rows.get(name, {}), **values}
        self.live.update(self._draw())

    def _draw(self) -> Group:
        idle = [row["state"] for row in self.rows.values() if row.get("state") in IDLE]
        many = len(self.rows) > MOST_ROWS
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
        more = {name: extras(row, (*METRICS, *SHOWN)) for name, row in rows.items()}
        besides = list(dict.fromkeys(column for each in more.values() for column in each))
        columns = ("run", "", "step", "steps/s", "left", "return", "value loss", "prediction",
                   "accuracy", "epsilon", "team", *besides)  # fmt: skip
        for column in columns:
            grid.add_column(column, justify="left" if column in ("run", "") else "right")
        for name, row in rows.items():
            step, steps = row.get("step", 0), row.get("steps", 1)
            cells: list[Any] = [name, ProgressBar(total=steps, completed=step, width=16)]
            cells.append(f"{step:,}")
            if row.get("state"):
                cells += [Text(row["state"], style="dim")]
            elif "rate" in row:
                cells += [
                    f"{row['rate']:,.0f}",
                    row["left"],
                    _shown(row["return"]),
                    f"{row['value_loss']:.4f}",
                    _shown(row["prediction_loss"], 3),
                    _shown(row["accuracy"]),
                    f"{row['epsilon']:.2f}",
                    f"{row['team_size']:.2f}",
                    *(more[name].get(column, "") for column in besides),
                ]
            grid.add_row(*cells)
        return grid


def _failed(row: Row) -> bool:
    return str(row.get("state", "")).startswith("failed")


class TensorBoard(Reporter):
    """Scalars for TensorBoard, in the run's directory."""

    def __init__(self, directory: Path):
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(directory / "tensorboard"))

    def metrics(self, row: Row) -> None:
        """Each number under its name."""
        for name, value in row.items():
            if name != "step" and value != "":
                self.writer.add_scalar(f"training/{name}", value, row["step"])

    def evaluation(self, row: Row) -> None:
        """The mean."""
        self.writer.add_scalar(evaluation_name(row), row["mean"], row["step"])

    def __exit__(self, *error: object) -> None:
        """Write the rest."""
        self.writer.close()


class WandB(Reporter):
    """Scalars for Weights & Biases."""

    def __init__(self, directory: Path):
        import wandb  # pyright: ignore[reportMissingImports]

        self.run = wandb.init(
            project="dropin",
            name=directory.name,
            dir=str(directory),
            config=read_json(directory / "run.json"),
        )

    def metrics(self, row: Row) -> None:
        """Each number under its name."""
        values = {f"training/{name}": value for name, value in row.items() if value != ""}
        self.run.log(values, step=row["step"])

    def evaluation(self, row: Row) -> None:
        """The mean."""
        self.run.log({evaluation_name(row): row["mean"]}, step=row["step"])

    def __exit__(self, *error: object) -> None:
        """Tell the server that the run is over."""
        self.run.finish()


class Several(Reporter):
    """Tells several reporters."""

    def __init__(self, reporters: Sequence[Reporter]):
        self.reporters = reporters

    def __enter__(self) -> "Several":
        """Start all."""
        for each in self.reporters:
            each.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End all."""
        for each in self.reporters:
            each.__exit__(*error)

    def begin(self, title: str, step: int, steps: int) -> None:
        """Tell all."""
        for each in self.reporters:
            each.begin(title, step, steps)

    def metrics(self, row: Row) -> None:
        """Tell all."""
        for each in self.reporters:
            each.metrics(row)

    def evaluation(self, row: Row) -> None:
        """Tell all."""
        for each in self.reporters:
            each.evaluation(row)

    def say(self, sentence: str) -> None:
        """Tell all."""
        for each in self.reporters:
            each.say(sentence)


SCREENS = ("auto", "lines", "json", "none")


def check_screen(kind: str) -> None:
    """Raise `InputError` for a way to report that does not exist."""
    if kind not in SCREENS:
        raise unknown("report", kind, SCREENS)


def check_extras(tensorboard: bool, wandb: bool) -> None:
    """Raise `MissingExtraError` for a package that is asked for and not there."""
    if tensorboard and find_spec("tensorboardX") is None:
        raise MissingExtraError("Logging for TensorBoard", "tensorboard")
    if wandb and find_spec("wandb") is None:
        raise MissingExtraError("Logging for Weights & Biases", "wandb")


def on_screen(kind: str | Reporter) -> Reporter:
    """How to report on the screen: a live table, lines, JSON or nothing; or as it is given."""
    if isinstance(kind, Reporter):
        return kind
    check_screen(kind)
    if kind == "auto":
        return Board() if Console().is_terminal else Lines()
    return {"lines": Lines, "json": Json, "none": Reporter}[kind]()


def also(kind: str, directory: Path, tensorboard: bool, wandb: bool) -> Reporter:
    """The screen, and what else is asked for."""
    reporters = [on_screen(kind)]
    if tensorboard:
        reporters.append(TensorBoard(directory))
    if wandb:
        reporters.append(WandB(directory))
    return Several(reporters)
