"""A team step by step: equal to a recorded episode, and people are nothing but newcomers."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import arena_rooms
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from arena_rooms import room, simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from dropin._xla.random import StepRNG
from dropin.agents import agent_policy
from dropin.analysis.mind import look_inside
from dropin.arena.frames import shorten
from dropin.arena.simulation import Moment, Simulation
from dropin.core.errors import InputError
from dropin.policies import make_policy
from dropin.render.episode import record_episode

LBF = room("lbf")
CLOSED = room("lbf", openness="closed", team_limit=3)
SCRIPTED = room(
    "lbf",
    openness="scripted",
    team_limit=3,
    schedule=((3, "leaves", 1), (5, "enters", 1), (7, "leaves", 2), (7, "enters", 2)),
)
FORT = room("fortattack")


def play(simulation: Simulation, seed: int = 0, steps: int = 1000) -> list[Moment]:
    moments = [simulation.reset(seed)]
    while len(moments) <= steps and not moments[-1].done:
        moments.append(simulation.step(moments[-1], {}))
    return moments


def outcome_of(sim, moment) -> Any:
    """What the last step led to."""
    return sim.time_step(moment)


def mind_of(sim, moment) -> Any:
    return sim.mind(moment)


def network_of(sim) -> Any:
    """The learner's own policy."""
    return sim.policy.agent.policy


def compilations(sim):
    return [each.compiled for each in (sim._team.step, sim._learner.think)]


def same_bits(one: Moment, two: Moment) -> bool:
    """Whether two moments are equal in all that a simulation computes."""
    mine, yours = (
        (each.seen, each.before, each.thought, each.outcome, each.accuracy) for each in (one, two)
    )
    equal = [
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (mine, yours)), strict=True)
    ]
    return all(equal) and (one.step, one.score, one.encoded) == (two.step, two.score, two.encoded)


@pytest.mark.parametrize(
    ("config", "learner", "mode"),
    [
        (LBF, "gpl-q", "greedy"),
        (LBF, "gpl-spi", "sampled"),
        (LBF, "ql-am", "greedy"),
        (LBF, "random", "greedy"),
        (LBF, "H1", "greedy"),
        (room("wolfpack"), "gpl-q", "greedy"),
        (FORT, "gpl-q", "greedy"),
    ],
    ids=lambda value: getattr(value, "game", value),
)
def test_an_episode_without_people_is_a_recorded_one(config, learner, mode):
    sim = simulation(config, learner, mode)
    moments = play(sim, seed=3)
    frames = list(record_episode(sim.env, sim.policy, seed=3))
    assert len(frames) == len(moments) > 5
    for frame, moment in zip(frames, moments, strict=True):
        assert eqx.tree_equal(jax.tree.map(np.asarray, frame.state), sim.state(moment))
        assert frame.score == moment.score
    for frame, moment in zip(frames, moments[1:], strict=False):
        step = sim.time_step(moment)
        assert eqx.tree_equal(jax.tree.map(np.asarray, frame.step), step)
    assert [moment.done for moment in moments] == [False] * (len(moments) - 1) + [True]


def test_without_the_mind_the_episode_is_the_same():
    sim = simulation(LBF)
    blind = Simulation(sim.env, sim.policy, mind=False)
    for seeing, not_seeing in zip(play(sim), play(blind), strict=True):
        assert eqx.tree_equal(sim.state(seeing), blind.state(not_seeing))
        assert not_seeing.frame["mind"] is None


def test_forced_actions_replace_those_of_the_type_and_of_the_learner_and_no_other():
    sim = simulation(CLOSED)
    moment = play(sim, seed=1, steps=4)[-1]
    chosen = np.asarray(outcome_of(sim, sim.step(moment, {})).actions)
    before, rng = sim.state(moment).game, StepRNG(jax.random.key(0))
    before = jax.tree.map(jnp.asarray, before)
    for slot in (0, 2):
        for action in range(6):
            after = sim.step(moment, {slot: action})
            joint = chosen.copy()
            joint[slot] = action
            # A step of level-based foraging is not random.
            wanted, outcome = sim.env.game.step(rng, before, jnp.asarray(joint))
            assert eqx.tree_equal(jax.tree.map(np.asarray, wanted), sim.state(after).game)
            assert after.frame["actions"] == joint.tolist()
            assert outcome_of(sim, after).rewards.tolist() == outcome.rewards.tolist()


def test_types_keep_their_memory_and_random_numbers_when_another_agent_is_forced():
    sim = simulation(CLOSED)
    moment = play(sim, seed=1, steps=4)[-1]
    free, forced = sim.step(moment, {}), sim.step(moment, {1: 5})
    assert eqx.tree_equal(sim.state(free).roster, sim.state(forced).roster)
    assert np.array_equal(free.seen[2], forced.seen[2])


def test_somebody_who_joins_is_for_the_learner_one_who_has_arrived():
    """At step 7 another agent enters slot 2. Were it an old one, joining would make it new."""
    sim = simulation(SCRIPTED)
    arrived = play(sim, seed=1, steps=7)[-1]
    assert sim.state(arrived).arrived.tolist() == [False, False, True]
    core = sim._team.core.unpack(arrived.seen[0])
    old = replace(core, state=replace(core.state, arrived=np.zeros(3, bool)))
    packed = tuple(np.asarray(each) for each in sim._team.core.pack(jax.tree.map(jnp.asarray, old)))
    stale = replace(arrived, seen=(packed, *arrived.seen[1:]))
    unnoticed, joined = sim.change(stale), sim.change(stale, joined=[2])
    assert same_memory(joined, arrived)
    assert not same_memory(unnoticed, arrived)
    assert joined.frame["mind"] == arrived.frame["mind"]


def same_memory(one: Moment, two: Moment) -> bool:
    pairs = zip(one.thought[1], two.thought[1], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_a_person_clears_the_memory_of_her_own_row_only():
    sim = simulation(CLOSED)
    moment = play(sim, seed=1, steps=5)[-1]
    joined = sim.change(moment, joined=[1])
    observation = jax.tree.map(jnp.asarray, sim.observation(moment))
    assert sim.observation(joined).arrived.tolist() == [False, True, False]
    before = sim._learner.memory.unpack(tuple(map(jnp.asarray, moment.before)))
    cleared = jax.tree.map(lambda rows: rows.at[1].set(0.0), before)
    key = jax.random.key(0)
    _, mind, after = look_inside(network_of(sim), key, observation, cleared)
    got = sim._learner.memory.unpack(joined.thought[1])
    for wanted, found in zip(*map(jax.tree.leaves, (after, got)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        mind_of(sim, joined).q_values, np.asarray(mind.q_values), rtol=1e-4, atol=1e-6
    )
    assert joined.frame["entered"] == [1]
    assert joined.frame["scene"] == moment.frame["scene"]
    assert joined.step == moment.step
    assert np.array_equal(joined.seen[2], moment.seen[2]), "no random number is used"


def test_who_is_replaced_is_a_new_agent_in_the_same_place():
    sim = simulation(room("lbf", openness="closed", team_limit=3, types=("H1", "H6", "H3")))
    kinds, roster = set(), None
    for seed in range(8):
        moment = play(sim, seed, steps=3)[-1]
        after = sim.change(moment, replaced=[2])
        old, new = sim.state(moment), sim.state(after)
        assert eqx.tree_equal(old.game, new.game)
        assert new.arrived.tolist() == [False, False, True]
        assert old.roster.agent_seed[:2].tolist() == new.roster.agent_seed[:2].tolist()
        assert old.roster.agent_seed[2] != new.roster.agent_seed[2]
        assert old.roster.type[:2].tolist() == new.roster.type[:2].tolist()
        kinds.add(int(new.roster.type[2]))
        roster = new.roster
        assert after.frame["agents"][2]["type"] == sim.env.team.pool.names[new.roster.type[2]]
    assert roster is not None
    assert len(kinds) > 1


def test_who_leaves_is_gone_and_the_last_teammate_is_replaced():
    sim = simulation(CLOSED)
    moment = play(sim, seed=1, steps=3)[-1]
    gone = sim.change(moment, left=[1])
    assert [each["present"] for each in gone.frame["agents"]] == [True, False, True]
    assert gone.frame["left"] == [1]
    assert gone.frame["entered"] == []
    assert sim.step(gone, {1: 3}).frame["actions"][1] is None
    both = sim.change(moment, left=[1, 2])
    assert [each["present"] for each in both.frame["agents"]] == [True, False, True]
    assert both.frame["entered"] == [2]
    one_by_one = sim.change(gone, left=[2])
    assert [each["present"] for each in one_by_one.frame["agents"]] == [True, False, True]
    learner = sim.change(moment, left=[0])
    assert learner.frame["agents"][0]["present"]
    assert learner.frame["entered"] == [0]


def test_a_change_of_nothing_changes_nothing():
    for sim in (simulation(LBF), simulation(LBF, "H1"), simulation(LBF, "ql-am")):
        moment = play(sim, steps=4)[-1]
        assert same_bits(sim.change(moment), moment)


def test_all_actions_of_a_person_are_single_steps():
    sim = simulation(LBF)
    moment = sim.change(play(sim, steps=4)[-1], joined=[1])
    each = sim.step_each(moment, {0: 2}, 1)
    assert len(each) == 6
    for action, after in enumerate(each):
        assert same_bits(after, sim.step(moment, {0: 2, 1: action}))


def test_openness_sends_a_person_to_wait_and_back():
    sim = simulation(SCRIPTED)
    moments = [sim.change(sim.reset(1), joined=[1])]
    idle = moments[:]
    for _ in range(6):
        moments.append(sim.step(moments[-1], {1: 2}))
    present = [each.frame["agents"][1]["present"] for each in moments]
    assert present == [True, True, True, False, False, True, True]
    assert moments[3].frame["left"] == moments[5].frame["entered"] == [1]
    assert moments[4].frame["actions"][1] is None
    assert moments[5].frame["agents"][1]["arrived"]
    # What she presses while she waits has no effect.
    for step in range(1, 7):
        waiting = step in (4, 5)
        idle.append(sim.step(idle[-1], {1: 4 if waiting else 2}))
    assert [each.digest for each in idle] == [each.digest for each in moments]


def test_agents_that_are_hit_wait_and_return():
    sim = simulation(FORT)
    moments, hit = next(
        (moments, moment)
        for moments in (play(sim, seed) for seed in range(20))
        for moment in moments[:-30]
        if moment.frame["left"]
    )
    (slot, *_) = hit.frame["left"]
    waits = [
        next(agent for agent in each.frame["scene"]["agents"] if agent["slot"] == slot)
        for each in moments[hit.step :]
    ]
    first = waits[0]["waiting"]
    assert first > 0
    back = next((n for n, each in enumerate(waits) if each.get("alive", True)), len(waits))
    assert [each["waiting"] for each in waits[:back]] == list(range(first, first - back, -1))
    if back < len(waits):
        assert back == first
        assert slot in moments[hit.step + back].frame["entered"]
    assert any("shoot" in line for line in hit.frame["text"])
    assert any(laser.get("hits") for laser in hit.frame["scene"]["lasers"])


def test_how_often_predictions_were_right_is_counted_since_each_agent_arrived():
    sim = simulation(SCRIPTED)
    moments = play(sim, seed=1, steps=12)
    counts: dict[int, list[int]] = {1: [0, 0], 2: [0, 0]}
    for now, after in pairwise(moments):
        probs, actions = mind_of(sim, now).teammate_probs, after.frame["actions"]
        for slot, count in counts.items():
            if actions[slot] is not None:
                count[0] += int(np.argmax(probs[slot]) == actions[slot])
                count[1] += 1
            if after.frame["agents"][slot]["arrived"]:
                count[:] = [0, 0]
            if after.frame["agents"][slot]["present"]:
                assert after.frame["mind"]["accuracy"][slot] == count
            else:
                assert after.frame["mind"]["accuracy"][slot] is None
    assert counts[2][1] == 5
    joined = sim.change(moments[-1], joined=[2])
    assert joined.frame["mind"]["accuracy"][2] == [0, 0]


def test_the_frame_says_what_the_learner_computes():
    sim = simulation(LBF)
    moment = play(sim, steps=6)[-1]
    policy, key = network_of(sim), jax.random.wrap_key_data(jnp.asarray(moment.seen[2]))
    memory = sim._learner.memory.unpack(tuple(map(jnp.asarray, moment.before)))
    observation = jax.tree.map(jnp.asarray, sim.observation(moment))
    _, act_key, _ = jax.random.split(key, 3)
    action, prediction, _ = policy.act_with_prediction(act_key, observation, memory)
    mind = moment.frame["mind"]
    assert mind["chosen"] == int(action) == int(np.argmax(mind["q"]))
    np.testing.assert_allclose(mind["q"], prediction.q_values, rtol=1e-3)
    here = np.flatnonzero(observation.present).tolist()
    for slot in here[1:]:
        probs = jax.nn.softmax(prediction.teammate_logits[slot])
        np.testing.assert_allclose(mind["probs"][slot], probs, atol=6e-4)
    for slot in here:
        wanted = prediction.utilities.individual[slot]
        np.testing.assert_allclose(mind["individual"][slot], wanted, rtol=6e-3)
    assert {(a, b) for a, b, _ in mind["edges"]} == {(a, b) for a in here for b in here if a < b}
    for a, b, weight in mind["edges"]:
        table = prediction.utilities.factors.pair_utility(a, b)
        np.testing.assert_allclose(weight, np.abs(table).mean(), rtol=6e-3)
        np.testing.assert_allclose(sim.pair_table(moment, a, b), table, rtol=2e-3, atol=1e-6)
        np.testing.assert_allclose(sim.pair_table(moment, b, a), table.T, rtol=2e-3, atol=1e-6)
    assert [point is not None for point in mind["points"]] == observation.present.tolist()


def test_learners_without_a_part_say_so():
    mind = simulation(LBF, "ql-am").reset(0).frame["mind"]
    assert mind["probs"] is not None
    assert (mind["individual"], mind["edges"], mind["points"]) == (None, None, None)
    assert simulation(LBF, "random").reset(0).frame["mind"] is None
    for learner in ("ql-am", "random"):
        sim = simulation(LBF, learner)
        with pytest.raises(InputError, match="no pairwise utilities"):
            sim.pair_table(sim.reset(0), 0, 1)


def test_a_frame_of_five_a_side_is_below_four_kibibytes():
    sim = simulation(room("fortattack", team_limit=5))
    moment, shots = sim.reset(0), dict.fromkeys(range(1, 10), 7)
    sizes = []
    while not moment.done and moment.step < 40:
        moment = sim.step(moment, shots if moment.step % 3 == 0 else {})
        sizes.append(len(moment.encoded))
    assert max(sizes) < 3900, "the server adds some fields"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda sim, moment: sim.step(moment, {9: 0}), "There is no slot 9: slots are 0 to 3."),
        (lambda sim, moment: sim.step(moment, {1: 6}), "There is no action 6: actions are 0 to 5."),
        (lambda sim, moment: sim.change(moment, joined=[-1]), "There is no slot -1"),
        (lambda sim, moment: sim.pair_table(moment, 1, 1), "no pair of agents in slots 1 and 1"),
        (lambda sim, moment: sim.pair_table(moment, 0, 7), "no pair of agents in slots 0 and 7"),
        (lambda sim, moment: sim.step(play(sim)[-1], {}), "The episode ended at step"),
        (lambda sim, moment: sim.change(play(sim)[-1], joined=[1]), "The episode ended at step"),
    ],
)
def test_wrong_input_gets_one_sentence(call, says):
    sim = simulation(LBF)
    with pytest.raises(InputError, match=says):
        call(sim, sim.reset(0))


def test_rooms_share_their_programs():
    sim = simulation(LBF)
    play(sim, steps=2)
    env = room("lbf", seed=5).make_env()
    other = Simulation(env, agent_policy(arena_rooms.untrained(LBF, seed=1), env))
    compiled = compilations(sim)
    play(other, steps=2)
    assert other._team is sim._team
    assert other._learner is sim._learner
    assert compiled == compilations(sim)
    assert not np.array_equal(
        mind_of(other, other.reset(0)).q_values, mind_of(sim, sim.reset(0)).q_values
    ), "each with its own weights"
    heuristic = Simulation(env, make_policy(env, "H1"))
    assert heuristic._team is sim._team


CHANGES = st.fixed_dictionaries(
    {name: st.sets(st.integers(0, 3), max_size=2) for name in ("joined", "replaced", "left")}
)
STEPS = st.dictionaries(st.integers(0, 3), st.integers(0, 5), max_size=3)


@settings(max_examples=8)
@given(st.integers(0, 100), st.lists(st.one_of(CHANGES, STEPS), max_size=12))
def test_the_same_deeds_give_the_same_bits(seed, deeds):
    sim = simulation(LBF)
    again = Simulation(sim.env, sim.policy)
    assert again._map is not None
    for one, two in zip(do(sim, seed, deeds), do(again, seed, deeds), strict=True):
        assert same_bits(one, two)
        present = sim.observation(one).present
        assert present[0]
        assert present[1:].any()
        assert present.sum() <= 4


def do(sim: Simulation, seed: int, deeds: list[dict]) -> list[Moment]:
    moments = [sim.reset(seed)]
    for deed in deeds:
        if moments[-1].done:
            break
        if "joined" in deed:
            moments.append(sim.change(moments[-1], **deed))
        else:
            moments.append(sim.step(moments[-1], deed))
    return moments


def test_nothing_is_compiled_after_the_warm_up():
    sim = simulation(room("lbf", team_limit=2, openness="closed", types=("H1",)))
    sim.warm_up()
    with pytest.MonkeyPatch.context() as patch:
        compiled = []
        patch.setattr("jax._src.compiler.compile_or_get_cached", lambda *a, **k: compiled.append(a))
        sim.step(sim.reset(3), {1: 2})
    assert not compiled
    sim.warm_up_for_people()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jax._src.compiler.compile_or_get_cached", lambda *a, **k: compiled.append(a))
        moment = sim.change(sim.reset(3), joined=[1])
        sim.pair_table(sim.step(moment, {1: 2}), 0, 1)
    assert not compiled


def test_a_step_is_traced_once_and_its_program_compiled_once():
    env = room("lbf", team_limit=2, openness="closed", types=("H2",)).make_env()
    traced, take = [], type(env).step_all

    def step_all(self, *args, **kwargs):
        traced.append(self)
        return take(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(env), "step_all", step_all)
        sim = Simulation(env, make_policy(env, "random"))
        moment = sim.reset(0)
        with ThreadPoolExecutor(4) as workers:
            after = list(workers.map(lambda _: sim.step(moment, {}), range(4)))
    assert len({each.digest for each in after}) == 1
    assert len(traced) == 1


def test_whole_numbers_of_a_frame_take_no_decimal_places():
    sim = simulation(room("lbf", team_limit=2, openness="closed", types=("H1",)))
    moment = sim.step(sim.reset(0), {})
    assert b".0," not in moment.encoded
    assert moment.frame["rewards"] == [0, 0]
    assert moment.frame["mind"]["q"] == shorten(np.asarray(sim.mind(moment).q_values))
