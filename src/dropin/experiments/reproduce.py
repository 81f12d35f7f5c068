"""From an experiment to its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dropin.errors import InputError, StoppedError
from dropin.experiments.answers import Answers
from dropin.experiments.choices import Choices
from dropin.experiments.collected import Collected
from dropin.experiments.items import Item
from dropin.experiments.outcome import Outcome
from dropin.experiments.page import write_page
from dropin.experiments.plan import Job, plan
from dropin.experiments.run import run_jobs


@dataclass(frozen=True)
class Experiment:
    """An experiment with all that was chosen, and where it is kept."""

    item: Item
    choices: Choices
    directory: Path
    places: Sequence[Path] = ()
    """More directories with runs."""

    def plan(self) -> list[Job]:
        """Its runs, and how far they are."""
        return plan(
            self.item.grids(self.choices),
            self.choices,
            self.directory,
            self.places,
            agents=self.item.agents,
        )

    def run(self, *, on: str = "here", address: str | None = None, report: str = "auto") -> None:
        """Run what is missing."""
        run_jobs(self.plan(), on=on, address=address, report=report)

    def outcome(self) -> tuple[Outcome, Collected]:
        """What comes out of the runs that are done."""
        collected = Collected(self.plan(), self.choices, Answers(self.directory / "answers"))
        if not any(collected.cells.values()):
            raise InputError(f"No run of {self.item.name} is done yet: there is nothing to draw.")
        return self.item.outcome(collected), collected

    def write(self, command: str) -> list[Path]:
        """Write the page, from the runs that are done; returns what people open."""
        outcome, collected = self.outcome()
        directory = self.directory / self.item.name
        return write_page(self.item, outcome, collected, command, directory)

    def reproduce(
        self,
        command: str,
        *,
        on: str = "here",
        address: str | None = None,
        report: str = "auto",
    ) -> list[Path]:
        """Run what is missing and write the page, also if some of the runs fail."""
        failure = None
        try:
            self.run(on=on, address=address, report=report)
        except StoppedError as error:
            failure = error
        try:
            pages = self.write(command)
        except InputError as error:
            raise failure or error from None
        if failure is not None:
            raise StoppedError(f"{failure} The page without them is {pages[0]}.")
        return pages
