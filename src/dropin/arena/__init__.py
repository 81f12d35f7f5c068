"""The arena: an open team in the browser, to watch, to look into and to join.

| module | content |
|---|---|
| `config` | what can be chosen for a room |
| `simulation` | one open team, step by step, with the actions of people |
| `frames` | moments as small dictionaries for a web page |
| `programs`, `program` | what a simulation compiles: as a whole, and one of them |
| `packing` | pytrees as few arrays, so that a step takes little time |
| `tables` | lists of similar rows as columns, so that a message is small |
| `recording`, `episodes` | files of episodes: write and re-simulate them, load and export them |
| `room`, `play`, `timeline` | rooms: clock and messages, a team with people, the episode so far |
| `people`, `ahead`, `rounds` | who is there, moments computed in advance, rounds of a study |
| `protocol`, `catalogue`, `keys` | messages and their limits, what can be chosen, which keys act |
| `hub`, `server`, `connection` | all rooms, the web server, the web socket of a person |
| `security`, `assets` | who may use the server, the files of the page |
| `study`, `questions` | studies: what their file says |
| `study_store`, `study_desk` | their results, and the way of a participant |

The server part imports JAX only when the first room is prepared, so that the page is there at once.
"""
