"""Which runs an experiment needs."""

import pytest

from dropin.errors import InputError
from dropin.experiments.choices import Choices
from dropin.experiments.grid import ALONE, Grid, scaled
from dropin.experiments.items import ITEMS
from dropin.experiments.runs import identity
from dropin.training.config import run_config


def test_a_grid_is_every_game_learner_and_seed_once():
    runs = Grid().runs(Choices(rules="reference"))
    assert len(runs) == 3 * len(ALONE) * 8 == len({identity(each) for each in runs})
    assert {each.rules for each in runs} == {"reference"}
    assert all(each.evaluation.team_limits == (5,) for each in runs)
    assert [each.seed for each in runs[:9]] == [*range(8), 0]
    assert {each.game: each.steps for each in runs} == {
        "lbf": 6_400_000, "wolfpack": 6_400_000, "fortattack": 16_000_000,
    }  # fmt: skip


def test_a_run_of_the_grid_is_the_run_that_a_user_would_start():
    (run,) = Grid(games=("lbf",), learners=("gpl-q",), seeds=1).runs(Choices())
    assert identity(run) == identity(run_config("lbf", "gpl-q"))


def test_types_changes_and_limits_reach_the_runs():
    grid = Grid(
        games=("fortattack",), learners=("ql",), seeds=1, team_limit=2, test_limits=(2, 3, 5),
        types={"fortattack": ("G4", "A2")}, changes={"fortattack": {"attackers": 1}},
    )  # fmt: skip
    (run,) = grid.runs(Choices())
    assert (run.types, run.changes, run.team_limit) == (("G4", "A2"), {"attackers": 1}, 2)
    assert run.evaluation.team_limits == (3, 5)
    assert run.environment().slots == 3


def test_a_part_of_a_grid():
    runs = Grid().runs(Choices(seeds=2, games=("lbf",), learners=("ql", "gnn")))
    assert [(each.learner, each.seed) for each in runs] == [
        ("ql", 0), ("ql", 1), ("gnn", 0), ("gnn", 1),
    ]  # fmt: skip
    assert Grid().runs(Choices(learners=("dgn",))) == []


def test_a_learner_of_ones_own_runs_where_learners_are_compared(own_learner):
    chosen = Choices(seeds=1, games=("lbf",), learners=("gpl-q", own_learner))

    def learners(item):
        return [run.learner for grid in ITEMS[item].grids(chosen).values()
                for run in grid.runs(chosen)]  # fmt: skip

    for item in ("figure2", "table2", "team-of-two"):
        assert learners(item) == ["gpl-q", own_learner]
    assert set(learners("held-out")) == {"gpl-q", own_learner}
    assert learners("partners") == learners("diversity") == []
    assert own_learner not in [run.learner for run in Grid().runs(Choices())]


def test_agents_have_places_for_all_they_will_meet():
    choices = Choices(games=("lbf",), learners=("gpl-q", "ql"), limits=(3, 9))
    for grid in ITEMS["held-out"].grids(choices).values():
        for run in grid.runs(choices):
            assert getattr(run.settings, "places", 9) == 9
    (usual, *_) = ITEMS["held-out"].grids(Choices())["train"].runs(Choices(learners=("ql",)))
    assert usual.settings.places == 5


def test_the_legacy_estimator_needs_enough_episodes():
    few = {"evaluation": {"envs": 8}}
    with pytest.raises(InputError, match="give --estimator fixed"):
        Grid().runs(Choices(rules="reference", settings=few))
    assert Grid().runs(Choices(rules="reference", settings=few, estimator="fixed"))


def test_a_small_version_has_fewer_seeds():
    for scale, seeds in ((1.0, 8), (0.5, 4), (0.05, 2)):
        runs = Grid(games=("lbf",), learners=("ql",)).runs(Choices(scale=scale))
        assert [each.seed for each in runs] == [*range(seeds)]
    assert len(Grid(games=("lbf",), learners=("ql",), seeds=1).runs(Choices(scale=0.05))) == 1


def test_a_scaled_run_explores_as_large_a_part_and_has_fewer_checkpoints():
    whole = run_config("fortattack", "gpl-spi")
    part = scaled(whole, 0.05)
    assert (part.steps, part.checkpoint_every) == (800_000, 80_000)
    assert scaled(whole, 0.5).checkpoint_every == whole.checkpoint_every
    assert part.training.epsilon.steps == 400_000
    assert part.training.temperature.steps == 400_000
    assert part.training.epsilon.last == whole.training.epsilon.last
    assert part.settings == whole.settings
    assert part.evaluation.envs * part.evaluation.episodes == 80
    tiny = scaled(whole, 1e-6)
    assert tiny.steps == tiny.checkpoint_every == 64
    for wrong in (0, -1, float("nan")):
        with pytest.raises(InputError, match="out of range"):
            scaled(whole, wrong)
