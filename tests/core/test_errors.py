import pytest

from dropin.core.errors import MissingExtraError, did_you_mean, unknown


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("wolfpac", "Unknown game 'wolfpac': it can be lbf, wolfpack; did you mean 'wolfpack'?"),
        ("zzz", "Unknown game 'zzz': it can be lbf, wolfpack."),
        ("LBF", "Unknown game 'LBF': it can be lbf, wolfpack; did you mean 'lbf'?"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(name, sentence):
    assert str(unknown("game", name, ["lbf", "wolfpack"])) == sentence


def test_the_end_of_a_sentence_has_the_nearest_name_or_nothing():
    assert did_you_mean("H11", ["H1", "G2"]) == "; did you mean 'H1'?"
    assert did_you_mean("zzz", ["H1", "G2"]) == "."


def test_a_missing_extra_says_how_to_install_it():
    assert "pip install 'dropin-rl[plot]'" in str(MissingExtraError("Drawing", "plot"))
