"""Which runs an experiment needs."""

import pytest

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.experiments.planning import identity
from dropin.experiments.runs import AD_HOC_LEARNERS, Grid, Options, scaled
from dropin.training.config import EvaluationConfig, run_config

ONE = Grid(games=("lbf",), learners=("ql",), seeds=1)


def test_a_grid_is_every_game_learner_and_seed_once():
    configs = Grid().run_configs(Options(rules="reference"))
    assert len(configs) == 3 * len(AD_HOC_LEARNERS) * 8 == len({*map(identity, configs)})
    assert {each.rules for each in configs} == {"reference"}
    assert all(each.evaluation.team_limits == (5,) for each in configs)
    assert [each.seed for each in configs[:9]] == [*range(8), 0]
    assert {each.game: each.steps for each in configs} == {
        "lbf": 6_400_000, "wolfpack": 6_400_000, "fortattack": 16_000_000,
    }  # fmt: skip


def test_a_run_of_the_grid_is_the_run_that_a_user_would_start():
    (config,) = Grid(games=("lbf",), learners=("gpl-q",), seeds=1).run_configs(Options())
    assert identity(config) == identity(run_config("lbf", "gpl-q"))


def test_types_settings_and_limits_reach_the_runs():
    grid = Grid(
        games=("fortattack",), learners=("ql",), seeds=1, team_limit=2, test_limits=(2, 3, 5),
        types={"fortattack": ("G4", "A2")}, game_settings={"fortattack": {"num_attackers": 1}},
    )  # fmt: skip
    (config,) = grid.run_configs(Options())
    assert (config.types, config.team_limit) == (("G4", "A2"), 2)
    assert config.game_settings == {"num_attackers": 1}
    assert config.evaluation.team_limits == (3, 5)
    assert config.make_env().slots == 3


def test_learners_are_evaluated_with_whom_their_spec_says():
    options = Options(games=("lbf",), learners=("gpl-q", "dgn"), seeds=1)
    gpl, dgn = Grid(learners=("gpl-q", "dgn")).run_configs(options)
    assert gpl.evaluation.teammates == ("strangers",)
    assert dgn.evaluation.teammates == ("strangers", "partners")


def test_a_part_of_a_grid():
    options = Options(seeds=2, games=("lbf",), learners=("ql", "gnn"))
    assert [(each.learner, each.seed) for each in Grid().run_configs(options)] == [
        ("ql", 0), ("ql", 1), ("gnn", 0), ("gnn", 1),
    ]  # fmt: skip
    assert not Grid().is_empty(options)
    nothing = Options(learners=("dgn",))
    assert Grid().is_empty(nothing)
    assert Grid().run_configs(nothing) == []


def learners_of(experiment, options):
    grids = registry.experiments[experiment].grids(options)
    return [config.learner for grid in grids.values() for config in grid.run_configs(options)]


def test_a_learner_of_ones_own_runs_where_learners_are_compared(own_learner):
    options = Options(seeds=1, games=("lbf",), learners=("gpl-q", own_learner))
    for experiment in ("figure2", "table2", "team-of-two"):
        assert learners_of(experiment, options) == ["gpl-q", own_learner]
    assert set(learners_of("held-out", options)) == {"gpl-q", own_learner}
    assert learners_of("partners", options) == learners_of("diversity", options) == []
    assert own_learner not in [config.learner for config in Grid().run_configs(Options())]


def test_a_learner_of_ones_own_that_is_evaluated_with_partners(own_joint_learner):
    options = Options(seeds=1, games=("lbf",), learners=("dgn", own_joint_learner))
    assert learners_of("partners", options) == ["dgn", own_joint_learner]


def test_a_game_of_ones_own_runs_where_games_are_compared(own_game):
    options = Options(seeds=1, games=("wolfpack", own_game), learners=("gpl-q",))
    configs = registry.experiments["table2"].grids(options)[""].run_configs(options)
    assert [config.game for config in configs] == ["wolfpack", own_game]
    assert registry.experiments["figure3a"].grids(options)[""].is_empty(options)


def test_agents_have_room_for_all_they_will_meet():
    options = Options(games=("lbf",), learners=("gpl-q", "ql"), team_limits=(3, 9))
    for grid in registry.experiments["held-out"].grids(options).values():
        for config in grid.run_configs(options):
            assert getattr(config.settings, "max_agents_per_side", 9) == 9
    usual = registry.experiments["held-out"].grids(Options())["train"]
    assert usual.run_configs(Options(learners=("ql",)))[0].settings.max_agents_per_side == 5


def test_settings_reach_every_run():
    changes = {"training": {"num_envs": 4}, "settings": {"discount": 0.5}}
    (config,) = ONE.run_configs(Options(steps=640, settings=changes))
    assert (config.training.num_envs, config.settings.discount) == (4, 0.5)
    plain = run_config("lbf", "ql", evaluation=EvaluationConfig(team_limits=(5,)))
    assert identity(ONE.run_configs(Options())[0]) == identity(plain)


def test_the_legacy_estimator_needs_enough_episodes():
    few = {"evaluation": {"num_envs": 8}}
    with pytest.raises(InputError, match="give --estimator fixed"):
        Grid().run_configs(Options(rules="reference", settings=few))
    assert Grid().run_configs(Options(rules="reference", settings=few, estimator="fixed"))


def test_a_small_version_has_fewer_seeds():
    grid = Grid(games=("lbf",), learners=("ql",))
    for scale, seeds in ((1.0, 8), (0.5, 4), (0.05, 2)):
        assert [each.seed for each in grid.run_configs(Options(scale=scale))] == [*range(seeds)]
    assert len(ONE.run_configs(Options(scale=0.05))) == 1


def test_a_scaled_run_explores_as_large_a_part_and_has_fewer_checkpoints():
    whole = run_config("fortattack", "gpl-spi")
    part = scaled(whole, 0.05)
    assert (part.steps, part.checkpoint_every) == (800_000, 80_000)
    assert scaled(whole, 0.5).checkpoint_every == whole.checkpoint_every
    assert part.training.epsilon.num_steps == 400_000
    assert part.training.temperature.num_steps == 400_000
    assert part.training.epsilon.final == whole.training.epsilon.final
    assert part.settings == whole.settings
    assert part.evaluation.num_envs * part.evaluation.episodes == 80
    tiny = scaled(whole, 1e-6)
    assert tiny.steps == tiny.checkpoint_every == 64
    for wrong in (0, -1, float("nan")):
        with pytest.raises(InputError, match="out of range"):
            scaled(whole, wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"scale": 0.0}, "scale 0 is out of range"),
        ({"scale": 1.5}, "out of range"),
        ({"scale": 0.5, "steps": 10}, "steps or a scale"),
        ({"seeds": 0}, "number of seeds is 0"),
        ({"games": ("chess",)}, "Unknown game 'chess'"),
        ({"learners": ("qll",)}, "did you mean 'ql'"),
        ({"estimator": "best"}, "Unknown estimator"),
        ({"team_limits": (1,)}, "Team limit 1 is too small"),
        ({"rules": "mine"}, "Unknown rules"),
    ],
)
def test_wrong_options_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        Options(**wrong)
