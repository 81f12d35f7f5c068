"""`dropin arena` and `dropin study`, as a user runs them."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from test_cli import check_refused, run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "study.toml"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--port", "70000"], "There is no port 70000"),
        (["--study", "none.toml"], "needs --record"),
        (["--study", "none.toml", "--record", "results"], "There is no file none.toml"),
        (["--replay", "file", "--record", "results"], "without --record"),
        (["--host", "0.0.0.0"], "Others can reach 0.0.0.0, so it needs a token"),
        (["--host", "no such host", "--token", "long-enough"], "Cannot listen on no such host"),
        (["--token", "short"], "A token has 8 to 128"),
        (["--token", "with spaces in it"], "A token has 8 to 128"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_refused(["arena", *arguments], says, capsys)


def test_a_port_that_is_taken_is_named(capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        says = f"Cannot listen on 127.0.0.1, port {port}: Address already in use."
        check_refused(["arena", "--port", port], says, capsys)


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['starlette'] = None\nfrom dropin.cli import main; main(['arena'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    says = "dropin: The arena needs an optional part: pip install 'dropin-rl[web]'.\n"
    assert done.stderr == says


def start(*arguments: str) -> "tuple[subprocess.Popen[str], str]":
    """Start the arena; return the process and its link."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dropin.cli", "arena", "--port", "0", *arguments],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    found = re.fullmatch(
        r"The arena is at (http://\S+) \(Ctrl-C stops it\)\.\n", process.stdout.readline()
    )
    assert found, process.stderr and process.stderr.read()
    return process, found[1]


def test_it_serves_and_stops_on_ctrl_c():
    process, link = start("--agent", "random", "--token", "a-token-to-use")
    try:
        base, token = link.split("/?token=")
        request = urllib.request.Request(
            f"{base}/api/catalogue", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["default"]["agent"] == "random"
        process.send_signal(signal.SIGINT)
        # The first room is being compiled now, which is not waited for.
        out, err = process.communicate(timeout=5)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (out, err) == ("", "")


def test_an_option_that_turns_out_wrong_ends_it_with_one_sentence():
    process, _ = start("--game", "lbf", "--rules", "house")
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 2
    assert err.startswith("dropin: Unknown rules 'house'")
    assert err.count("\n") == 1


def test_a_study_is_checked_exported_and_deleted(capsys, tmp_path):
    code, out, _ = run("study", "check", str(EXAMPLE), capsys=capsys)
    assert code == 0
    assert out == "Foraging with a partner: 12 pages; gpl-q, ql; ql, gpl-q\n"

    from dropin.arena.study import load_study
    from dropin.arena.study_store import StudyStore

    study = load_study(EXAMPLE)
    store = StudyStore(tmp_path)
    store.claim(study)
    store.start(study, "P01", None)
    store.start(study, "P02", None)
    table = tmp_path / "out.csv"
    assert run("study", "export", str(tmp_path), capsys=capsys)[1].startswith("participant,")
    code, out, _ = run("study", "export", str(tmp_path), "--out", str(table), capsys=capsys)
    assert (code, out) == (0, f"{table}: 2 participants\n")
    check_refused(["study", "export", str(tmp_path), "--out", str(table)], "exists", capsys)
    whole = tmp_path / "out.json"
    run("study", "export", str(tmp_path), "--out", str(whole), capsys=capsys)
    assert [each["participant"] for each in json.loads(whole.read_text())] == ["P01", "P02"]
    code, out, _ = run("study", "delete", str(tmp_path), "P01", capsys=capsys)
    assert (code, out) == (0, "1 files of participant P01 are deleted.\n")
    for arguments, says in (
        (["delete", str(tmp_path), "P01"], "There is no participant 'P01'"),
        (["delete", str(tmp_path)], "Give a participant"),
        (["export", str(tmp_path), "P02"], "Give a participant"),
        (["export", str(tmp_path / "none")], "does not hold the results"),
        (["export", str(tmp_path), "--out", "a.txt"], "neither a .csv nor a .json"),
        (["burn", str(tmp_path)], "Unknown action 'burn'"),
    ):
        check_refused(["study", *arguments], says, capsys)
