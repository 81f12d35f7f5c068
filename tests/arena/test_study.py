import csv
import io
import json
from collections import Counter
from pathlib import Path

import pytest

from dropin.arena.people import Keys
from dropin.arena.questions import check_answers
from dropin.arena.rounds import EpisodeResult
from dropin.arena.study import Page, check_participant, load_study, read_study
from dropin.arena.study_store import StudyStore, export_csv, export_json
from dropin.core.errors import InputError

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "study.toml"
SMALL = {
    "title": "Small",
    "consent": "Do you agree?",
    "debriefing": "Thanks.",
    "completion_code": "CODE",
    "conditions": [{"name": "a", "agent": "random"}, {"name": "b", "agent": "H1"}],
    "room": {"game": "lbf"},
    "questions": [
        {"id": "how", "kind": "scale", "text": "How?", "max": 5},
        {"id": "which", "kind": "choice", "text": "Which?", "options": ["x", "y"]},
        {"id": "why", "kind": "text", "text": "Why?", "required": False, "max_length": 10},
    ],
}


def test_the_example_compares_gpl_q_with_ql():
    study = load_study(EXAMPLE)
    assert study.orders == [("gpl-q", "ql"), ("ql", "gpl-q")]
    kinds = [page.kind for page in study.pages(("gpl-q", "ql"))]
    assert kinds == ["consent", "practice", *4 * ["round", "questions"], "debriefing", "end"]
    pages = [page for page in study.pages(("ql", "gpl-q")) if page.kind == "round"]
    assert [(page.number, page.condition, page.seed) for page in pages] == [
        (1, "ql", 600), (2, "ql", 601), (3, "gpl-q", 602), (4, "gpl-q", 603),
    ]  # fmt: skip
    values = study.room_values(pages[2])
    assert values["agent"] == "lbf/gpl-q"
    assert values["clock"]["kind"] == "turns"
    practice = study.room_values(study.pages(("ql",))[1])
    assert (practice["agent"], practice["openness"], practice["seed"]) == ("random", "closed", 500)


def test_participants_are_assigned_in_balance_and_by_the_seed():
    for design in ("between", "within"):
        study = read_study({**SMALL, "design": design, "seed": 3})
        earlier = []
        for number in range(20):
            earlier.append(study.assign(earlier, None))
            counts = Counter(earlier)
            assert max(counts.values()) - min(counts.values(), default=0) <= 1 or number == 0
        again = []
        for _ in range(20):
            again.append(study.assign(again, None))
        assert again == earlier
        other = read_study({**SMALL, "design": design, "seed": 4})
        different = []
        for _ in range(20):
            different.append(other.assign(different, None))
        assert different != earlier
        assert study.assign(earlier, "b")[0] == "b"
        with pytest.raises(InputError, match="Unknown condition 'c'"):
            study.assign([], "c")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"colour": 1}, "Unknown part of a study 'colour'"),
        ({"consent": ""}, "no consent"),
        ({"conditions": []}, "no conditions"),
        ({"conditions": ["a"]}, "have to be tables"),
        ({"conditions": [{"name": "a b"}]}, "is not a word"),
        ({"conditions": [{"name": "a"}, {"name": "a"}]}, "two conditions 'a'"),
        ({"design": "across"}, "Unknown design"),
        ({"seed": "x"}, "not a whole number"),
        ({"rounds": {"number": 0}}, "too small"),
        ({"rounds": 3}, "has to be a table"),
        ({"exclusion": {"idle": 1}}, "Unknown setting of Exclusion 'idle'"),
        ({"questions": [{"id": "a", "kind": "poem", "text": ""}]}, "Unknown kind of question"),
        ({"questions": [{"id": "A b", "kind": "text", "text": ""}]}, "not a word in small letters"),
        ({"questions": [{"id": "a", "kind": "choice", "text": ""}]}, "needs two options"),
        ({"questions": 2 * [{"id": "a", "kind": "text", "text": ""}]}, "two questions 'a'"),
        ({"questions": [{"kind": "text", "text": ""}]}, "has no id"),
    ],
)
def test_what_is_wrong_with_a_study_is_one_sentence(change, says):
    with pytest.raises(InputError, match=says):
        read_study({**SMALL, **change})


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        load_study(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("title = ")
    with pytest.raises(InputError, match=r"bad\.toml cannot be read as TOML"):
        load_study(bad)


def test_answers_are_checked():
    questions = read_study(SMALL).questions
    good = {"how": 5, "which": "x", "why": "because"}
    assert check_answers(questions, good) == good
    assert check_answers(questions, {"how": 1, "which": "y", "why": ""}) == {"how": 1, "which": "y"}
    for change, says in (
        ({"how": 6}, "number from 1 to 5"),
        ({"how": True}, "number from 1 to 5"),
        ({"how": None}, "Please answer: How?"),
        ({"which": "z"}, "one of: x, y"),
        ({"why": "x" * 11}, "too long"),
        ({"why": 3}, "with a text"),
        ({"other": 3}, "not asked"),
    ):
        with pytest.raises(InputError, match=says):
            check_answers(questions, {**good, **change})
    with pytest.raises(InputError, match="no answers"):
        check_answers(questions, [1])


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 65, "a b", "=1", "-1", None, 5, "é"])
def test_an_id_that_cannot_be_part_of_a_link_is_refused(name):
    with pytest.raises(InputError, match="participant's id"):
        check_participant(name)


def played(store, study, participant, score=2.0, idle=1, end=True):
    """Add a participant with one round."""
    session = store.start(study, participant, None)
    page = Page("round", 1, session.order[0], 5)
    record = session.round_of(page)
    record["rooms"].append(f"room{participant}")
    store.add_episode(session, page, EpisodeResult(5, 9, score, Keys(10, idle), None))
    record["answers"] = {"how": 3, "why": "=1+1"}
    session.finished = 9.0 if end else None
    store.save(session)
    return session


def test_sessions_survive_a_restart_and_are_exported(tmp_path):
    study = read_study(SMALL, "digest")
    store = StudyStore(tmp_path)
    store.claim(study)
    played(store, study, "P1")
    lazy = played(store, study, "P2", idle=6)
    played(store, study, "P3", end=False)
    store.add_disconnection(lazy, Page("round", 1, lazy.order[0], 5))
    again = StudyStore(tmp_path)
    again.claim(study)
    assert [each.participant for each in again.sessions] == ["P1", "P2", "P3"]
    assert again.start(study, "P2", None).id == lazy.id
    rows = list(csv.DictReader(io.StringIO(export_csv(again.sessions))))
    assert [row["participant"] for row in rows] == ["P1", "P2", "P3"]
    assert [row["flags"] for row in rows] == ["", "idle", "unfinished"]
    assert [row["idle_share"] for row in rows] == ["0.1", "0.6", "0.1"]
    assert [row["disconnections"] for row in rows] == ["0", "1", "0"]
    assert rows[0]["score"] == "2.0"
    assert rows[0]["answer_how"] == "3"
    # A table calculator must not compute what a participant wrote; the JSON has it as it was.
    assert rows[0]["answer_why"] == "'=1+1"
    whole = json.loads(export_json(again.sessions))
    assert whole[0]["rounds"][0]["answers"]["why"] == "=1+1"
    assert whole[1]["flags"] == ["idle"]
    assert {each["condition"] for each in rows} == {"a", "b"}


def test_a_directory_of_another_study_is_refused(tmp_path):
    StudyStore(tmp_path).claim(read_study(SMALL, "one"))
    with pytest.raises(InputError, match="another study"):
        StudyStore(tmp_path).claim(read_study(SMALL, "two"))


def test_all_of_a_participant_can_be_deleted(tmp_path):
    study = read_study(SMALL)
    store = StudyStore(tmp_path)
    first, second = played(store, study, "P1"), played(store, study, "P2")
    recordings = [
        tmp_path / "roomP1-0.json",
        tmp_path / "roomP1-1.json",
        tmp_path / "roomP2-0.json",
    ]
    for path in recordings:
        path.write_text("{}")
    assert store.delete("P1") == 3
    assert [path.exists() for path in recordings] == [False, False, True]
    assert [each.participant for each in StudyStore(tmp_path).sessions] == ["P2"]
    store.save(first)  # A room that is still open must not bring the data back.
    assert [each.id for each in StudyStore(tmp_path).sessions] == [second.id]
    with pytest.raises(InputError, match="no participant 'P1'"):
        store.delete("P1")


def test_a_damaged_session_is_named(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "a.json").write_text('{"format": 1}')
    with pytest.raises(InputError, match=r"a\.json is damaged"):
        StudyStore(tmp_path)
    (folder / "a.json").write_text('{"format": 7}')
    with pytest.raises(InputError, match="not a session"):
        StudyStore(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"rooms": ["../mine"]}, {"rooms": ["*/../../mine"]}, {"id": "../../mine"}],
)
def test_results_of_a_stranger_name_no_files_elsewhere(tmp_path, change):
    mine = tmp_path / "mine-1.jsonl"
    mine.write_text("kept")
    played = {
        "number": 1, "practice": False, "condition": "a", "seed": 0,
        "rooms": change.get("rooms", []),
        "episodes": [], "disconnections": 0, "answers": {},
    }  # fmt: skip
    values = {
        "id": change.get("id", "00ff"), "participant": "p", "order": ["a"], "started": 1.0,
        "finished": None, "page": 1, "times": [], "rounds": [played], "format": 1,
        "exclusion": {"idle_share": 0.5, "disconnections": 3},
    }  # fmt: skip
    folder = tmp_path / "results" / "sessions"
    folder.mkdir(parents=True)
    (folder / "00ff.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="damaged"):
        StudyStore(tmp_path / "results").delete("p")
    assert mine.read_text() == "kept"
