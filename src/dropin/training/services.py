"""Logging of runs for TensorBoard and for Weights & Biases, besides what is shown on the screen."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from dropin.core.config import PlainMapping
from dropin.core.errors import MissingExtraError
from dropin.core.files import read_json
from dropin.training.config import STRANGERS
from dropin.training.reporters import Reporter, Row, parse_message, screen_reporter

__all__ = ["Separate", "Several", "TensorBoard", "WandB", "check_extras", "run_reporter"]


class TensorBoard(Reporter):
    """Logs scalars for TensorBoard, in the run's directory."""

    def __init__(self, directory: Path):
        from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(directory / "tensorboard"))

    def metrics(self, row: Row) -> None:
        """Log each number under its name."""
        for name, value in row.items():
            if name != "step" and value is not None:
                self.writer.add_scalar(f"training/{name}", value, row["step"])

    def evaluation(self, row: Row) -> None:
        """Log the mean return."""
        self.writer.add_scalar(_scalar_name(row), row["mean_return"], row["step"])

    def __exit__(self, *error: object) -> None:
        """Write what is left."""
        self.writer.close()


class WandB(Reporter):
    """Logs scalars for Weights & Biases."""

    def __init__(self, directory: Path):
        import wandb  # pyright: ignore[reportMissingImports]

        self.run = wandb.init(
            project="dropin",
            name=directory.name,
            dir=str(directory),
            config=read_json(directory / "run.json"),
            reinit="create_new",  # Several runs may train in this process.
        )

    def metrics(self, row: Row) -> None:
        """Log each number under its name."""
        values = {f"training/{name}": value for name, value in row.items() if value is not None}
        self.run.log(values, step=row["step"])

    def evaluation(self, row: Row) -> None:
        """Log the mean return."""
        self.run.log({_scalar_name(row): row["mean_return"]}, step=row["step"])

    def __exit__(self, *error: object) -> None:
        """Finish the run."""
        self.run.finish()


class Several(Reporter):
    """Passes everything on to several reporters."""

    def __init__(self, reporters: Sequence[Reporter]):
        self.reporters = reporters

    def __enter__(self) -> "Several":
        """Start all of them."""
        for each in self.reporters:
            each.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """End all of them."""
        for each in self.reporters:
            each.__exit__(*error)

    def begin(self, title: str, step: int, steps: int) -> None:
        """Pass it on."""
        for each in self.reporters:
            each.begin(title, step, steps)

    def metrics(self, row: Row) -> None:
        """Pass it on."""
        for each in self.reporters:
            each.metrics(row)

    def evaluation(self, row: Row) -> None:
        """Pass it on."""
        for each in self.reporters:
            each.evaluation(row)

    def say(self, sentence: str) -> None:
        """Pass it on."""
        for each in self.reporters:
            each.say(sentence)

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Pass it on."""
        for each in self.reporters:
            each.pass_on(run, message)


class Separate(Reporter):
    """Passes on what each of several runs reports to a reporter of its own.

    Args:
        reporters: The reporters by the names of the runs.
    """

    def __init__(self, reporters: Mapping[str, Reporter]):
        self.reporters = reporters

    def pass_on(self, run: str, message: PlainMapping) -> None:
        """Pass on metrics and evaluations, as those of a run alone."""
        kind, values = parse_message(message)
        if kind in ("metrics", "evaluation"):
            getattr(self.reporters[run], kind)(values)

    def __exit__(self, *error: object) -> None:
        """End all of them."""
        for each in self.reporters.values():
            each.__exit__(*error)


def check_extras(tensorboard: bool, wandb: bool) -> None:
    """Raise `MissingExtraError` for a package that is needed and not installed.

    Args:
        tensorboard: Whether TensorBoard's package is needed.
        wandb: Whether that of Weights & Biases is needed.
    """
    if tensorboard and find_spec("tensorboardX") is None:
        raise MissingExtraError("Logging for TensorBoard", "tensorboard")
    if wandb and find_spec("wandb") is None:
        raise MissingExtraError("Logging for Weights & Biases", "wandb")


def run_reporter(
    kind: str, directories: Sequence[Path], tensorboard: bool, wandb: bool
) -> Reporter:
    """Return the reporter of a run, or of several that train together.

    Args:
        kind: As in `screen_reporter`.
        directories: The directories of the runs.
        tensorboard: Whether to log for TensorBoard as well.
        wandb: Whether to log for Weights & Biases as well.
    """
    reporters = [screen_reporter(kind)]
    for log, wanted in ((TensorBoard, tensorboard), (WandB, wandb)):
        if wanted and len(directories) == 1:
            reporters.append(log(directories[0]))
        elif wanted:
            reporters.append(Separate({each.name: log(each) for each in directories}))
    return Several(reporters)


def _scalar_name(row: Row) -> str:
    """Return the name of an evaluation among logged scalars."""
    among = "" if row["teammates"] == STRANGERS else f"_{row['teammates']}"
    return f"evaluation/limit_{row['team_limit']}_{row['mode']}{among}"
