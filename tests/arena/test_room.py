"""Rooms with a fake team: people, clocks, and who may do what."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes import HORIZON, STAY, FakeTeam, Guest, config, enter, in_room, quiet, say, until

from dropin.arena.people import Keys
from dropin.arena.protocol import Limits
from dropin.arena.rounds import EpisodeResult, Round


def test_the_first_message_is_the_welcome_with_all_frames_so_far():
    async def scenario(room, team):
        first = await enter(room, "Ada")
        say(room, first, "speed", per_second=30)
        await until(lambda: len(first.of("frame")) >= 3)
        second = await enter(room, "Bo")
        welcome = second.got[0]
        assert welcome["type"] == "welcome"
        steps = [frame["step"] for frame in welcome["frames"]]
        assert steps == list(range(len(steps)))
        assert len(steps) >= 4
        assert welcome["you"] == second.id
        assert [each["name"] for each in welcome["people"]] == ["Ada", "Bo"]
        assert welcome["game"]["actions"][STAY] == "stay"
        assert welcome["config"]["game"] == "lbf"

    in_room(scenario)


def test_who_comes_before_the_room_is_ready_is_told_so_and_then_welcomed():
    async def scenario():
        from concurrent.futures import ThreadPoolExecutor

        from fakes import GAME

        from dropin.arena.play import Prepared
        from dropin.arena.room import Room

        ready = asyncio.Event()

        async def prepare():
            await ready.wait()
            return Prepared(FakeTeam(), dict(GAME))

        with ThreadPoolExecutor(1) as workers:
            room = Room("room", config(), workers, prepare=prepare)
            task = asyncio.create_task(room.run())
            guest = Guest()
            room.join(guest)
            await asyncio.sleep(0.02)
            assert [each["type"] for each in guest.got] == ["preparing"]
            ready.set()
            await until(lambda: guest.of("frame"))
            assert [each["type"] for each in guest.got[:3]] == ["preparing", "welcome", "status"]
            room.close("The end.")
            await task

    asyncio.run(scenario())


def test_a_room_without_people_stands_still():
    async def scenario(room, team):
        await asyncio.sleep(0.4)
        assert room.timeline.current.step == 0
        guest = await enter(room)
        say(room, guest, "speed", per_second=30)
        await until(lambda: room.timeline.current.step >= 2)
        room.leave(guest)
        await quiet(room)
        step = room.timeline.current.step
        await asyncio.sleep(0.2)
        assert room.timeline.current.step == step

    in_room(scenario)


def test_play_pause_step_speed():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "pause")
        await quiet(room)
        step = room.timeline.current.step
        say(room, guest, "step")
        say(room, guest, "step")
        await quiet(room)
        assert room.timeline.current.step == step + 2
        assert guest.of("status")[-1]["playing"] is False
        say(room, guest, "speed", per_second=30)
        say(room, guest, "play")
        start = time.monotonic()
        await until(lambda: room.timeline.current.step >= step + 8)
        assert time.monotonic() - start < 1
        assert guest.of("status")[-1]["playing"] is True

    in_room(scenario)


def test_restart_next_and_rewind():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "pause")
        for _ in range(4):
            say(room, guest, "step")
        await quiet(room)
        at = room.timeline.current.step
        say(room, guest, "rewind", step=2)
        await quiet(room)
        assert guest.of("truncate")[-1]["step"] == 2
        assert room.timeline.current.step == 2
        assert len(room.timeline.texts) == 3
        say(room, guest, "rewind", step=at + 5)
        await quiet(room)
        assert guest.errors == [f"There is no step {at + 5} yet: the episode is at step 2."]
        say(room, guest, "next")
        await quiet(room)
        assert guest.of("episode")[-1]["seed"] == 1
        say(room, guest, "restart")
        await quiet(room)
        assert guest.of("episode")[-1]["seed"] == 1
        say(room, guest, "restart", seed=7)
        await quiet(room)
        assert guest.of("episode")[-1] == {"type": "episode", "episode": 3, "seed": 7}
        assert guest.last["step"] == 0
        assert [call[1] for call in team.calls if call[0] == "reset"] == [0, 1, 1, 7]

    in_room(scenario)


def test_an_episode_is_followed_by_the_next(monkeypatch):
    monkeypatch.setattr("dropin.arena.room.EPISODE_PAUSE", 0.05)

    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "speed", per_second=30)
        await until(lambda: guest.of("episode"))
        assert guest.of("episode")[0] == {"type": "episode", "episode": 1, "seed": 1}
        steps = [each["step"] for each in guest.of("frame")]
        assert HORIZON in steps
        assert steps[steps.index(HORIZON) + 1] == 0

    in_room(scenario)


def test_in_turns_a_key_is_answered_at_once_with_what_was_computed_ahead():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "take", slot=1)
        await quiet(room)
        assert ("change", [1], [], []) in team.calls
        assert guest.last["agents"][1]["person"] == guest.id
        assert guest.last["agents"][1]["arrived"] is True
        assert guest.last["deadline_ms"] == 10_000
        step = guest.last["step"]
        await until(lambda: len([c for c in team.calls if c[:2] == ("step", step)]) == 5)
        say(room, guest, "act", action=3, step=step)
        await until(lambda: guest.last["step"] == step + 1)
        assert guest.of("acted")[-1] == {"type": "acted", "slot": 1, "action": 3, "step": step}
        assert guest.last["actions"] == [9, 3, 9]
        # Nothing was computed again.
        assert len([c for c in team.calls if c[:2] == ("step", step)]) == 5

    in_room(scenario)


def test_in_turns_the_limit_passes_and_the_default_action_is_taken():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "take", slot=1)
        await quiet(room)
        step = guest.last["step"]
        start = time.monotonic()
        await until(lambda: guest.last["step"] == step + 1)
        assert 0.1 < time.monotonic() - start < 0.6
        assert guest.last["actions"][1] == STAY
        assert guest.keys == Keys(1, 1)

    in_room(scenario, config("turns", limit_ms=150))


def test_in_turns_the_room_waits_for_both_people():
    async def scenario(room, team):
        one, two = await enter(room), await enter(room)
        say(room, one, "take", slot=1)
        say(room, two, "take", slot=2)
        await quiet(room)
        step = one.last["step"]
        say(room, one, "act", action=0, step=step)
        await quiet(room)
        assert room.waiting_for == [2]
        assert one.last["step"] == step
        # Whoever was there does not arrive again with the second person.
        changes = [call for call in team.calls if call[0] == "change"]
        assert changes == [("change", [1], [], []), ("change", [2], [], [])]
        say(room, two, "act", action=2, step=step)
        await until(lambda: one.last["step"] == step + 1)
        assert one.last["actions"] == [9, 0, 2]
        assert two.last == one.last
        assert {each["person"] for each in one.last["agents"][1:]} == {one.id, two.id}

    in_room(scenario, config("turns"))


def test_in_real_time_ticks_do_not_wait():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "take", slot=0)
        await quiet(room)
        start, step = time.monotonic(), guest.last["step"]
        await until(lambda: guest.last["step"] == step + 1)
        say(room, guest, "act", action=1, step=step)  # One tick late: it counts for the next.
        await until(lambda: guest.last["step"] == step + 2)
        assert guest.last["actions"][0] == 1
        await until(lambda: guest.last["step"] == step + 4)
        assert guest.last["actions"][0] == STAY
        assert 0.5 < time.monotonic() - start < 0.9
        say(room, guest, "act", action=1, step=0)
        await quiet(room)
        assert guest.errors == []

    in_room(scenario, config("real_time", tick_ms=150))


def test_acts_that_cannot_be_are_refused():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "pause")
        say(room, guest, "act", action=1, step=0)
        await quiet(room)
        assert guest.errors == ["You watch: take a place to act."]
        say(room, guest, "take", slot=1)
        await quiet(room)
        step = guest.last["step"]
        say(room, guest, "act", action=5, step=step)
        say(room, guest, "act", action=1, step=step + 1)
        await quiet(room)
        assert guest.errors[1:] == [
            "There is no action 5: they are 0 to 4.",
            f"There is no step {step + 1} yet: the episode is at step {step}.",
        ]
        assert room.actors()[1].action is None

    in_room(scenario)


def test_places_that_cannot_be_taken():
    async def scenario(room, team):
        one, two = await enter(room), await enter(room)
        say(room, one, "take", slot=1)
        say(room, two, "take", slot=1)
        say(room, two, "take", slot=3)
        say(room, two, "release")
        await quiet(room)
        assert two.errors == [
            "Somebody else has taken this place.",
            "There is no place 3: places are 0 to 2.",
            "You have no place to give back.",
        ]
        assert one.errors == []

    in_room(scenario)


def test_openness_sends_a_person_to_wait_and_back():
    async def scenario(room, team):
        guest, other = await enter(room), await enter(room)
        say(room, guest, "pause")
        say(room, guest, "restart")
        say(room, guest, "take", slot=2)
        say(room, guest, "speed", per_second=30)
        for step in range(4):
            await until(lambda step=step: guest.last["step"] == step and room.waiting_for == [2])
            say(room, guest, "act", action=0, step=step)
        # Away in steps 4 to 6, in which nobody is waited for.
        await until(lambda: guest.last["step"] == 7)
        frames = {each["step"]: each for each in guest.of("frame")}
        assert [frames[step]["agents"][2]["person"] for step in range(3, 8)] == [
            guest.id, None, None, None, guest.id,
        ]  # fmt: skip
        waiting = [each["people"][0]["waiting"] for each in other.of("status")]
        assert waiting[-2:] == [True, False]
        assert room.waiting_for == [2]
        # Openness makes the newcomer; the person does not join a second time.
        assert [call for call in team.calls if call[0] == "change"] == [("change", [2], [], [])]
        say(room, other, "take", slot=2)
        await quiet(room)
        assert other.errors == ["Somebody else has taken this place."]

    in_room(scenario)


@pytest.mark.parametrize("on_leave", ["type", "leave"])
@pytest.mark.parametrize("lost", [True, False])
def test_whoever_leaves_is_replaced_or_leaves_the_team(on_leave, lost):
    async def scenario(room, team):
        guest, other = await enter(room), await enter(room)
        say(room, guest, "take", slot=1)
        await quiet(room)
        if lost:
            room.leave(guest)
        else:
            say(room, guest, "release")
        await quiet(room)
        gone = ("change", [], [1], []) if on_leave == "type" else ("change", [], [], [1])
        assert [call for call in team.calls if call[0] == "change"][-1] == gone
        frame = next(each for each in reversed(other.of("frame")) if each["agents"][1] is not None)
        assert frame["agents"][1]["person"] is None
        assert other.of("status")[-1]["waiting_for"] == []
        assert len(other.of("status")[-1]["people"]) == (1 if lost else 2)

    in_room(scenario, config("turns", on_leave=on_leave))


def test_a_person_keeps_the_place_in_the_next_episode_and_after_a_rewind():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "pause")
        say(room, guest, "step")
        say(room, guest, "step")
        say(room, guest, "take", slot=1)
        await quiet(room)
        say(room, guest, "rewind", step=0)
        await quiet(room)
        # At step 0 the place was not the person's yet.
        assert [call for call in team.calls if call[0] == "change"] == 2 * [("change", [1], [], [])]
        assert guest.last["step"] == 0
        assert guest.last["agents"][1]["person"] == guest.id
        say(room, guest, "next")
        await quiet(room)
        assert guest.last["agents"][1]["person"] == guest.id
        assert len([call for call in team.calls if call[0] == "change"]) == 3

    in_room(scenario)


def test_who_watches_cannot_disturb_those_who_play():
    async def scenario(room, team):
        player, watcher, second = [await enter(room) for _ in range(3)]
        say(room, player, "take", slot=1)
        await quiet(room)
        for kind in ("pause", "step", "next", "play"):
            say(room, watcher, kind)
        say(room, watcher, "rewind", step=0)
        say(room, watcher, "restart", seed=3)
        say(room, watcher, "speed", per_second=1)
        say(room, watcher, "clock", kind="watch")
        await quiet(room)
        assert len(watcher.errors) == 8
        assert watcher.errors[0] == "Somebody else plays here, so you cannot do that (pause)."
        assert room.playing
        say(room, second, "take", slot=2)
        await quiet(room)
        say(room, second, "pause")
        say(room, second, "rewind", step=0)
        await quiet(room)
        assert second.errors == ["Somebody else plays here, so you cannot do that (rewind)."]
        assert not room.playing

    in_room(scenario, config("turns"))


def test_the_clock_of_a_room_can_be_changed():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "take", slot=1)
        say(room, guest, "clock", kind="real_time", tick_ms=150)
        await quiet(room)
        assert guest.of("status")[-1]["clock"] == {
            "kind": "real_time", "tick_ms": 150, "limit_ms": 10_000,
        }  # fmt: skip
        step = guest.last["step"]
        await until(lambda: guest.last["step"] >= step + 2, 1)
        say(room, guest, "clock", kind="real_time", tick_ms=20)
        say(room, guest, "clock", kind="sundial")
        await quiet(room)
        assert len(guest.errors) == 2
        assert "20 ms" in guest.errors[0]
        assert "sundial" in guest.errors[1]

    in_room(scenario)


def test_pairs_and_pings_are_answered():
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "pause")
        say(room, guest, "restart")
        say(room, guest, "ping", t=1.5)
        say(room, guest, "pair", step=0, a=0, b=2)
        say(room, guest, "pair", step=0, a=1, b=1)
        say(room, guest, "pair", step=0, a=1, b=8)
        say(room, guest, "pair", step=9, a=1, b=2)
        await quiet(room)
        assert guest.of("pong") == [{"type": "pong", "t": 1.5}]
        assert guest.of("pair") == [
            {"type": "pair", "step": 0, "a": 0, "b": 2, "table": [[0.0, 0.0], [2.0, 0.0]]}
        ]
        assert len(guest.errors) == 3
        say(room, guest, "hello")
        assert guest.errors[-1] == "You have said hello already."

    in_room(scenario)


def test_a_full_room_lets_nobody_in():
    async def scenario(room, team):
        await enter(room)
        await enter(room)
        with pytest.raises(ValueError, match="This room is full: it holds 2 people"):
            room.join(Guest())

    in_room(scenario, limits=Limits(people=2))


def test_a_flooded_room_says_so():
    async def scenario(room, team):
        guest = await enter(room)
        for _ in range(1100):
            say(room, guest, "pair", step=0, a=1, b=1)
        assert "The room is busy: try again." in guest.errors
        assert len(room._inbox) == 1000

    in_room(scenario)


def test_a_game_that_fails_ends_its_room_with_a_sentence(caplog):
    async def scenario(room, team):
        guest = await enter(room)
        say(room, guest, "speed", per_second=30)
        await until(lambda: room.closed)
        assert guest.errors == [
            "The room has stopped because of an error in the server: open another one."
        ]
        assert guest.closed == guest.errors[0]
        with pytest.raises(ValueError, match="closed"):
            room.join(Guest())

    in_room(scenario, team=FakeTeam(fails_at=2))
    assert "The game is broken." in caplog.text


@dataclass
class Notes:
    """What a room tells its recorder."""

    lines: list[tuple[Any, ...]] = field(default_factory=list)

    def start(self, simulation, config, seed, moment):
        self.lines.append(("start", config.game, seed, moment.step))

    def change(self, moment, change, people):
        self.lines.append(("change", dict(change), dict(people), moment.step))

    def step(self, moment, forced, people, pressed):
        times = {slot: each and each.latency_ms for slot, each in pressed.items()}
        self.lines.append(("step", dict(forced), dict(people), times, moment.step))

    def rewind(self, step):
        self.lines.append(("rewind", step))

    def finish(self):
        self.lines.append(("finish",))
        return "file"


def test_all_that_happens_is_recorded():
    notes = Notes()
    guests = []

    async def scenario(room, team):
        guest = await enter(room)
        guests.append(guest)
        say(room, guest, "pause")
        say(room, guest, "restart")
        say(room, guest, "take", slot=1)
        await quiet(room)
        say(room, guest, "act", action=2, step=0, ms=0.0)
        await until(lambda: guest.last["step"] == 1)
        say(room, guest, "rewind", step=0)
        await quiet(room)
        say(room, guest, "step")
        await quiet(room)
        room.leave(guest)
        await quiet(room)

    in_room(scenario, recorder=notes)
    start = notes.lines.index(("start", "lbf", 0, 0), 2)
    person = {1: guests[0].id}
    change = {"joined": [1], "replaced": [], "left": []}
    lines = notes.lines[start:]
    assert lines[1] == ("change", change, person, 0)
    kind, forced, people, latency, step = lines[2]
    assert (kind, forced, people, step) == ("step", {1: 2}, person, 1)
    assert 0 <= latency[1] < 1000
    assert lines[3:] == [
        ("rewind", 0),
        ("step", {1: STAY}, person, {1: None}, 1),
        ("change", {"joined": [], "replaced": [1], "left": []}, {}, 1),
        ("finish",),
    ]


def test_a_round_of_a_study_runs_by_itself_and_is_reported(monkeypatch):
    monkeypatch.setattr("dropin.arena.room.EPISODE_PAUSE", 0.02)
    results: list[EpisodeResult] = []
    lost: list[int] = []
    round = Round("secret", 1, 2, results.append, lambda: lost.append(1))

    async def scenario(room, team):
        with pytest.raises(ValueError, match="belongs to a participant"):
            room.join(Guest(session="wrong"))
        guest = await enter(room, session="secret")
        assert guest.slot == 1
        for kind in ("pause", "release", "restart"):
            say(room, guest, kind)
        await quiet(room)
        assert guest.errors == 3 * ["This is a round of a study: it runs by itself."]
        for step in range(2):
            await until(lambda step=step: guest.last["step"] == step)
            say(room, guest, "act", action=1, step=step)
        await until(lambda: guest.last["step"] == 2)
        room.leave(guest)
        await until(lambda: lost)
        # Coming back, the participant goes on; a second window takes over from the first.
        second = await enter(room, session="secret")
        third = await enter(room, session="secret")
        assert second.closed == "You have opened this page a second time."
        assert third.slot == 1
        step = third.got[0]["frames"][-1]["step"]
        while not third.of("over"):
            say(room, third, "act", action=0, step=room.timeline.current.step)
            await asyncio.sleep(0.01)
        assert room.playing is False

    in_room(scenario, config("turns"), round=round, team=FakeTeam(horizon=4))
    assert [each.steps for each in results] == [4, 4]
    assert [each.seed for each in results] == [0, 1]
    assert results[0].score == 2.0
    assert results[0].keys == Keys(4, 0)
    assert results[1].keys == Keys(4, 0)
    assert len(lost) == 2
