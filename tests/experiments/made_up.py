"""Runs with evaluations that nobody played, for tests of what is made of them."""

from dropin.training.directory import RunDirectory
from dropin.training.table import AMONG


def make_up(path, config, returns, *, accuracy=None, partners=None):
    """A finished run: `returns` by team limit, and those among `partners`, are lists over the
    checkpoints; every checkpoint but the first is as long after the one before."""
    files = RunDirectory(path)
    files.create(config)
    more = ["shooting_accuracy"] * (accuracy is not None) + [AMONG] * (partners is not None)
    files.evaluation.create(more)
    number = len(next(iter(returns.values())))
    last = config.updates(config.steps) * config.steps_per_update
    for place in range(number):
        for among, table in (("strangers", returns), ("partners", partners or {})):
            for limit, values in table.items():
                value = values[place]
                row = dict.fromkeys(files.evaluation.columns, "") | {
                    "step": last * place // (number - 1),
                    "team_limit": limit,
                    "policy": "greedy",
                    "episodes": 320,
                    "mean": value,
                    "low": value - 0.5,
                    "high": value + 0.5,
                    "legacy": value + 100,
                    "shooting_accuracy": "" if accuracy is None else accuracy[place],
                    AMONG: among,
                }
                files.evaluation.append(row)
    return files
