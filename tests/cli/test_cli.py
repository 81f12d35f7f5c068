import subprocess
import sys

import pytest

from dropin.cli import main


def run(*args, capsys):
    code = 0
    try:
        main(args)
    except SystemExit as stop:
        code = stop.code or 0
    out, err = capsys.readouterr()
    return code, out, err


def check_refused(arguments, says, capsys):
    """One sentence with what is wrong, exit code 2, and nothing else."""
    code, out, err = run(*arguments, capsys=capsys)
    assert code == 2
    assert says in err
    assert err.startswith("dropin: ")
    assert err.count("\n") == 1
    assert out == ""


def test_games_lists_the_games(capsys):
    code, out, _ = run("games", capsys=capsys)
    assert code == 0
    assert "lbf" in out
    assert "reference" in out


def test_types_lists_the_pool(capsys):
    code, out, _ = run("types", "lbf", capsys=capsys)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("H")] == [
        "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9",
    ]  # fmt: skip


def test_play_tells_the_story_and_writes_the_gif_once(capsys, tmp_path):
    gif = tmp_path / "episode.gif"
    arguments = ("play", "lbf", "--team-limit", "5", "--seed", "2", "--gif", str(gif))
    code, out, _ = run(*arguments, capsys=capsys)
    assert code == 0
    assert out.startswith("Start: the learner")
    assert "The episode ends after" in out
    before = gif.read_bytes()
    assert before.startswith(b"GIF")
    code, _, err = run(*arguments, "--learner", "H3", capsys=capsys)
    assert code == 2
    assert "exists already" in err
    assert gif.read_bytes() == before
    code, _, _ = run(*arguments, "--learner", "H3", "--force", capsys=capsys)
    assert code == 0
    assert gif.read_bytes() != before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["types", "lfb"], "did you mean 'lbf'"),
        (["play", "lbf", "--rules", "papr"], "did you mean 'paper'"),
        (["play", "lbf", "--team-limit", "0"], "Team limit 0"),
        (["play", "lbf", "--team-limit", "1"], "Team limit 1"),
        (["play", "lbf", "--team-limit", "7", "--slots", "5"], "above the number of slots"),
        (["play", "lbf", "--team-limit", "60"], "too small"),
        (["play", "lbf", "--learner", "H11"], "Unknown type 'H11'"),
    ],
)
def test_wrong_input_is_one_sentence_and_exit_code_2(arguments, says, capsys):
    check_refused(arguments, says, capsys)


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["train", "--help"], ["play", "--help"], ["arena", "--help"], ["--version"]],
)
def test_these_answer_without_importing_jax(arguments):
    code = (
        "import sys; from dropin.cli import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "assert 'jax' not in sys.modules and 'equinox' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
