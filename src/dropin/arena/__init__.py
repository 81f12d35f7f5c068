"""The arena: an open team in the browser, to watch, to look into and to join.

| module | content |
|---|---|
| `config` | what can be chosen for a room |
| `simulation` | one open team, step by step, with the actions of people |
| `frames` | moments as small dictionaries for a web page |
| `packing` | pytrees as few arrays, so that a step takes little time |
| `recording`, `episodes` | files of episodes: write and re-simulate them, load and export them |
"""
