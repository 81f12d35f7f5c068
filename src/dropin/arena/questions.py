"""Questions of a study, and whether an answer is one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dropin.core.config import Checked, PlainDict, from_dict, to_dict
from dropin.core.errors import InputError, unknown
from dropin.core.reading import first_repeated

__all__ = [
    "ChoiceQuestion",
    "Question",
    "ScaleQuestion",
    "TextQuestion",
    "check_answers",
    "read_questions",
]

_ID = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LONGEST = 4000
_LONGEST_SCALE = 100


@dataclass(frozen=True)
class _Question(Checked):
    """What all questions have."""

    id: str
    """The name of the column in the export."""
    text: str
    kind: str
    required: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _ID.fullmatch(self.id):
            raise InputError(f"The id {self.id!r} of a question is not a word in small letters.")

    def describe(self) -> PlainDict:
        """Return the question as the page shows it."""
        return to_dict(self)


@dataclass(frozen=True)
class ScaleQuestion(_Question):
    """A number on a scale."""

    kind: Literal["scale"] = "scale"
    min: int = field(default=1, metadata={"least": 0})
    max: int = 7
    low: str = ""
    """What the lowest number means."""
    high: str = ""
    """What the highest number means."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.min < self.max <= self.min + _LONGEST_SCALE:
            raise InputError(
                f"The scale of the question {self.id!r} goes from {self.min} to {self.max}: it has"
                f" at least 2 and at most {_LONGEST_SCALE + 1} numbers."
            )

    def check(self, answer: object) -> int:
        """Return an answer if it is one."""
        good = isinstance(answer, int) and not isinstance(answer, bool)
        if not good or not self.min <= answer <= self.max:  # pyright: ignore[reportOperatorIssue]
            raise InputError(f"Answer {self.text!r} with a number from {self.min} to {self.max}.")
        return answer  # pyright: ignore[reportReturnType]


@dataclass(frozen=True)
class ChoiceQuestion(_Question):
    """One of several options."""

    kind: Literal["choice"] = "choice"
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.options) < 2:
            raise InputError(f"The question {self.id!r} needs two options or more.")

    def check(self, answer: object) -> str:
        """Return an answer if it is one."""
        if not isinstance(answer, str) or answer not in self.options:
            raise InputError(f"Answer {self.text!r} with one of: {', '.join(self.options)}.")
        return answer


@dataclass(frozen=True)
class TextQuestion(_Question):
    """A text of the participant's own."""

    kind: Literal["text"] = "text"
    max_length: int = 1000

    def check(self, answer: object) -> str:
        """Return an answer if it is one."""
        if not isinstance(answer, str):
            raise InputError(f"Answer {self.text!r} with a text.")
        if len(answer) > min(self.max_length, _LONGEST):
            raise InputError(
                f"The answer to {self.text!r} is too long: at most {self.max_length} characters."
            )
        return answer


Question = ScaleQuestion | ChoiceQuestion | TextQuestion
_KINDS: Mapping[str, type[ScaleQuestion] | type[ChoiceQuestion] | type[TextQuestion]] = {
    "scale": ScaleQuestion,
    "choice": ChoiceQuestion,
    "text": TextQuestion,
}


def read_questions(values: object) -> tuple[Question, ...]:
    """Read the questions of a study.

    Args:
        values: The tables `[[questions]]`.

    Raises:
        InputError: If one of them cannot be used.
    """
    if not isinstance(values, list | tuple) or not all(
        isinstance(each, Mapping) for each in values
    ):
        raise InputError("The questions have to be tables: [[questions]].")
    found: list[Question] = []
    for each in values:
        kind = each.get("kind")
        if not isinstance(kind, str) or kind not in _KINDS:
            raise unknown("kind of question", kind, _KINDS)
        for name in ("id", "text"):
            if name not in each:
                raise InputError(f"A question has no {name}.")
        found.append(from_dict(_KINDS[kind], each))
    if (twice := first_repeated(each.id for each in found)) is not None:
        raise InputError(f"There are two questions {twice!r}.")
    return tuple(found)


def check_answers(questions: tuple[Question, ...], answers: object) -> PlainDict:
    """Return the answers to questions if all required ones are there.

    Args:
        questions: The questions.
        answers: What the page has sent.

    Raises:
        InputError: If an answer is missing or cannot be one; the sentence is for the participant.
    """
    if not isinstance(answers, Mapping):
        raise InputError("There are no answers.")
    known = {each.id for each in questions}
    for name in answers:
        if name not in known:
            raise InputError("There is an answer to a question that was not asked.")
    checked: PlainDict = {}
    for each in questions:
        answer = answers.get(each.id)
        if answer is not None and answer != "":
            checked[each.id] = each.check(answer)
        elif each.required:
            raise InputError(f"Please answer: {each.text}")
    return checked
