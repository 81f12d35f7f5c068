"""The commands. Arguments are read before anything heavy is imported."""

import gc
import os
import sys
import warnings
from collections.abc import Sequence

import tyro
from tyro.extras import SubcommandApp

from dropin import __version__
from dropin.cli import (
    arena,
    benchmark,
    campaign,
    evaluate,
    look,
    play,
    plot,
    reproduce,
    study,
    train,
    zoo,
)
from dropin.core.errors import InputError, MissingExtraError, StoppedError

__all__ = ["main"]

GC_THRESHOLD = 100_000
"""New objects between two searches for reference cycles."""

app = SubcommandApp()
app.command(look.games)
app.command(look.types)
app.command(look.learners)
app.command(play.play)
app.command(arena.arena)
app.command(study.study)
app.command(train.train)
app.command(evaluate.evaluate)
app.command(plot.plot)
app.command(reproduce.reproduce)
app.command(campaign.campaign)
app.command(benchmark.app, name="benchmark", help="Compare learners in open teams.")
app.command(zoo.zoo)


_format_by_python = warnings.formatwarning


def _format_warning(
    message: Warning | str, category: type[Warning], file: str, number: int, line: str | None = None
) -> str:
    """Return a warning that is meant for the user as one line, without a place in the code."""
    if category is UserWarning:
        return f"dropin: warning: {message}\n"
    return _format_by_python(message, category, file, number, line)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; wrong input ends with one sentence and exit code 2."""
    warnings.formatwarning = _format_warning
    # Tracing makes millions of small objects; with Python's threshold of 700 the search for cycles
    # among them takes a quarter of the time.
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    given = list(sys.argv[1:] if args is None else args)
    if given == ["--version"]:
        print(f"dropin {__version__}")
        return
    try:
        app.cli(
            prog="dropin",
            description="Open ad hoc teamwork: games, teammates who come and go, learners.",
            args=given or ["--help"],
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except (InputError, MissingExtraError) as error:
        print(f"dropin: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except StoppedError as error:
        print(f"dropin: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:
        # The reader of our output is gone, so the rest of it is discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        print(f"dropin: {error.filename or 'A file'}: {error.strerror}.", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
