"""What a larger team does to agents trained with at most three, under the rules `reference`.

There the levels of objects follow from the team: up to 5 with three agents, up to 9 with five. So
each agent is evaluated at its own team limit, at limit 5, and at limit 5 with objects that are no
heavier than in training; a random player for scale. Means over runs, 95 % intervals over runs.

    python benchmarks/larger_teams.py DIRECTORY... [--episodes 800]
"""

import argparse
from pathlib import Path

import dropin
from dropin.cli.show import show_table
from dropin.evaluation.statistics import estimate
from dropin.training.run_directory import runs_in

SEEN = (1, 5)
"""Levels of objects with three agents."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=800)
    options = parser.parse_args()
    wide = {"rules": "reference", "slots": 5}
    envs = {
        "limit 3": dropin.make("lbf", team_limit=3, **wide),
        "limit 5": dropin.make("lbf", team_limit=5, **wide),
        "limit 5, objects of levels 1 to 5": dropin.make(
            "lbf", team_limit=5, object_levels=SEEN, **wide
        ),
    }
    rows = []
    for name, env in envs.items():
        for estimator in ("fixed", "legacy"):
            for directory in (None, *options.directories):
                players = ["random"] if directory is None else runs_in(directory)
                means = [
                    dropin.evaluate(who, env, episodes=options.episodes, estimator=estimator).mean
                    for who in players
                ]
                found = estimate(means)
                who = "random" if directory is None else directory.name
                rows.append((name, estimator, who, f"{found.mean:.2f}", found.interval))
    show_table(("teams", "estimator", "player", "return", "95 % interval"), rows, numbers=2)


if __name__ == "__main__":
    main()
