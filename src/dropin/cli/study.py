"""Export or delete what the participants of a study have done: `dropin study`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from dropin.core.errors import InputError, unknown

__all__ = ["study"]

ACTIONS = ("export", "delete", "check")


def study(
    action: Annotated[Positional[str], arg(metavar="ACTION")],
    path: Annotated[Positional[Path], arg(metavar="PATH")],
    participant: Annotated[Positional[str | None], arg(metavar="[PARTICIPANT]")] = None,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Export the results of a study, delete those of a participant, or check its file.

    Studies are run by `dropin arena --study FILE --record DIRECTORY`.

    Args:
        action: export, delete, or check.
        path: The directory of the results; for check, the file of the study.
        participant: Whose data are deleted, recordings included.
        out: The file to write: .csv (one row a round) or .json (everything). Without it the table
            is printed.
        force: Replace the file if it exists.
    """
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if (participant is None) == (action == "delete"):
        raise InputError("Give a participant for delete, and only then.")

    from dropin.arena.study import load_study
    from dropin.arena.study_store import STUDY_FILE, StudyStore, export_csv, export_json
    from dropin.core.files import write

    if action == "check":
        checked = load_study(path)
        orders = "; ".join(", ".join(order) for order in checked.orders)
        print(f"{checked.title}: {len(checked.pages(checked.orders[0]))} pages; {orders}")
        return
    if not (path / STUDY_FILE).exists():
        raise InputError(f"{path} does not hold the results of a study.")
    store = StudyStore(path)
    if participant is not None:
        print(f"{store.delete(participant)} files of participant {participant} are deleted.")
        return
    as_json = out is not None and out.suffix == ".json"
    if out is not None and out.suffix not in (".csv", ".json"):
        raise InputError(f"{out} is neither a .csv nor a .json file.")
    if out is not None and out.exists() and not force:
        raise InputError(f"{out} exists already: give another name, or --force to replace it.")
    text = export_json(store.sessions) if as_json else export_csv(store.sessions)
    if out is None:
        print(text, end="")
    else:
        write(out, text.encode())
        print(f"{out}: {len(store.sessions)} participants")
