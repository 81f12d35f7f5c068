"""What was found out about an agent is kept, so that nothing is worked out twice."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dropin.agents import Agent
from dropin.errors import InputError
from dropin.experiments.runs import Kept, identity
from dropin.files import read_json, write_json


class Answers:
    """A file for each question about the agent of a run at a step."""

    def __init__(self, directory: Path):
        self.directory = directory

    def ask(
        self, question: str, run: Kept, step: int, find: Callable[[Agent], Any], **how: Any
    ) -> Any:
        """The answer, as plain values; `how` are the settings that it depends on."""
        about = {"question": question, "run": identity(run.config), "step": step, "how": how}
        text = json.dumps(about, sort_keys=True)
        path = self.directory / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        if path.exists():
            try:
                kept = read_json(path)
                if kept["about"] == json.loads(text):
                    return kept["answer"]
            except (InputError, KeyError, TypeError):
                pass
        answer = json.loads(json.dumps(find(run.agent(step))))
        write_json(path, {"about": about, "answer": answer})
        return answer
