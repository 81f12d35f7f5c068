"""Changes to inputs that keep most of their structure, so that they get past the parser.

Each takes the bytes of an input and a random generator, and returns the bytes of another one. They
need no fuzzer: `fuzz_run` gives them to one that is guided by coverage, `test_fuzz_targets` does
without. The fuzzer changes the same inputs again and again, so what was parsed is remembered; no
function changes a value in place.
"""

import json
import math
import re
import tomllib
import zlib
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any

import safetensors
import safetensors.numpy

from dropin.core.files import checksum

Mutate = Callable[[bytes, Random], bytes]

WORDS = (
    "format", "config", "settings", "learner", "game", "training", "evaluation", "epsilon", "types",
    "initial", "final", "num_steps", "update_every", "steps", "seed", "rules", "openness", "keep",
    "team_limit", "team_limits", "teammates", "versions", "machine", "custom_env", "game_settings",
    "lbf", "wolfpack", "fortattack", "gpl-q", "gpl-spi", "ql", "ciao", "maddpg", "dgn", "gnn",
    "paper", "reference", "custom", "closed", "scripted", "H1", "H6", "all", "agents", "agent",
    "checkpoint", "kind", "interface", "policy_arrays", "rank", "num_heads", "num_sides", "step",
    "num_envs", "rollout_length", "clock", "tick_ms", "limit_ms", "turns", "real_time", "leaves",
    "enters", "schedule", "initial_slots", "questions", "conditions", "rounds", "practice", "room",
    "id", "text", "options", "scale", "choice", "min", "max", "number", "episodes", "title",
    "idle_share", "answers", "mean", "low", "high", "n", "measurements", "quantity", "policy",
    "name", "state", "change", "rewind", "end", "header", "forced", "people", "keys", "q", "sides",
    "actions", "agent_features", "shared_features", "mean_return", "mode", "greedy", "sampled",
    "__metadata__", "dropin", "dtype", "shape", "data_offsets", "F32", "BF16", "F8_E4M3", "I64",
    "type_hidden_size", "utility_hidden_size", "discount", "target", "policy", "sarsa",
    "max_length",
)  # fmt: skip
"""Names and values that mean something in some file."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 10**9, 2**31, 2**63 - 1, -(2**63), 10**12, 0.0,
    -0.0, 0.5, 1e-320, 1e308, "", " ", "0", "x", "é", "\x00", "\n", "a,b", "=1+1",
    "../../etc/passwd",
    "/dev/zero", "<script>", "x" * 3000, "{number}", "%s", "${HOME}", "\u202e", "\U0001f600",
    [], [[]], [None], {}, {"": None}, {"a": {"b": 1}}, [1, 2, 3],
)  # fmt: skip
RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 25, "9" * 400, "9" * 5000, "-0", "1E2",
    '{"a":1,"a":2}', '"\\ud800"', '"\\udc00\\ud800"', "[" * 300 + "]" * 300, "[" * 5000,
    '{"a":' * 300 + "1" + "}" * 300, "nan", "'x'", "01", "\ufeff1", "[1,]", "/**/1",
)  # fmt: skip
"""Texts of JSON, or nearly so, that no value is written as."""
RAW_TOML = (
    "nan", "inf", "-inf", "0x" + "f" * 40, "0x" + "f" * 9000, "9" * 400, "9" * 5000, "1e999",
    "1979-05-27T07:32:00Z", "1979-05-27", "07:32:00", "[" * 300 + "]" * 300, "[" * 5000,
    "{a={b={c={}}}}", "'''x'''", '"\\uD800"', "{a=1,a=2}", "{" + ".".join("a" * 300) + "=1}",
)  # fmt: skip
LARGEST = 20_000
"""Bytes of an input, at most."""
REMEMBERED = 512
"""Inputs that are remembered as they were parsed."""


def _word(rng: Random) -> Any:
    return rng.choice(WORDS)


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Change single bytes, or cut, repeat and move pieces."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        place = rng.randrange(len(out) + 1)
        length = rng.choice((1, 1, 2, 4, 16, 64))
        match rng.randrange(6):
            case 0 if out:
                out[place % len(out)] ^= 1 << rng.randrange(8)
            case 1:
                del out[place : place + length]
            case 2:
                out[place:place] = rng.randbytes(length)
            case 3:
                start = rng.randrange(len(out) + 1)
                out[place:place] = out[start : start + length]
            case 4:
                out[place:place] = str(_word(rng)).encode()
            case _:
                out[place : place + 1] = bytes([rng.choice(b'\x00\xff\n\r",:{}[]\\=-.019')])
    return bytes(out[:LARGEST])


# Trees of plain values.


def _change_text(text: str, rng: Random) -> str:
    match rng.randrange(6):
        case 0:
            return str(_word(rng))
        case 1:
            return text[: rng.randrange(len(text) + 1)]
        case 2:
            place = rng.randrange(len(text) + 1)
            return (
                text[:place]
                + chr(rng.choice((0, 9, 10, 0x41, 0xE9, 0x202E, 0x1F600)))
                + text[place:]
            )
        case 3:
            return text * rng.choice((2, 3, 100 if len(text) < 50 else 2))
        case 4:
            return text.swapcase()
        case _:
            return f"{rng.choice('=+-@./~')}{text}"


def _change_number(number: float, rng: Random) -> Any:
    if (isinstance(number, float) and not math.isfinite(number)) or abs(number) > 1e300:
        return 0
    return rng.choice(
        (number + 1, number - 1, -number, number * 2, number * 1000, float(number), int(number),
         str(number), bool(number), number / 3, [number])
    )  # fmt: skip


def _change_value(value: Any, rng: Random, raw: tuple[str, ...], used: list[str]) -> Any:
    chance = rng.random()
    if chance < 0.07:
        used.append(rng.choice(raw))
        return f"@@{len(used) - 1}@@"
    if chance < 0.3:
        return rng.choice(ODD)
    if chance < 0.4:
        return _word(rng)
    if isinstance(value, str):
        return _change_text(value, rng)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return _change_number(value, rng)
    if isinstance(value, list):
        match rng.randrange(5):
            case 0:
                return value * rng.choice((0, 2, 3))
            case 1:
                return value[: rng.randrange(len(value) + 1)]
            case 2:
                return [*value, rng.choice(value) if value else rng.choice(ODD)]
            case 3:
                return rng.sample(value, len(value))
            case _:
                return {str(_word(rng)): value}
    if isinstance(value, dict):
        match rng.randrange(3):
            case 0:
                return {**value, str(_word(rng)): rng.choice(ODD)}
            case 1:
                return list(value.values())
            case _:
                return {}
    return rng.choice(ODD)


def mutate_tree(tree: Any, rng: Random, raw: tuple[str, ...], used: list[str]) -> Any:
    """Change one value somewhere in nested dictionaries and lists, or remove or rename it.

    Args:
        tree: The value.
        rng: Random numbers.
        raw: Texts that may stand in place of a value.
        used: Those that do, in the order of their placeholders; more are added.
    """
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.12:
        return _change_value(tree, rng, raw, used)
    if isinstance(tree, list):
        place = rng.randrange(len(tree))
        if rng.random() < 0.1:
            return tree[:place] + tree[place + 1 :]
        return [*tree[:place], mutate_tree(tree[place], rng, raw, used), *tree[place + 1 :]]
    name, chance = rng.choice(list(tree)), rng.random()
    if chance < 0.1:
        return {other: each for other, each in tree.items() if other != name}
    if chance < 0.2:
        new = _change_text(name, rng)
        return {(new if other == name else other): each for other, each in tree.items()}
    if chance < 0.25:
        return {**tree, name: tree[rng.choice(list(tree))]}
    return {**tree, name: mutate_tree(tree[name], rng, raw, used)}


def _mutate_json(tree: Any, rng: Random) -> str:
    used: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree = mutate_tree(tree, rng, RAW, used)
    text = json.dumps(tree)
    for number, raw in enumerate(used):
        text = text.replace(f'"@@{number}@@"', raw)
    return text


@lru_cache(REMEMBERED)
def _json_tree(data: bytes) -> Any:
    return json.loads(data.decode())


def mutate_json(data: bytes, rng: Random) -> bytes:
    """Change a JSON file, most often as a tree."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng)
    try:
        return _mutate_json(_json_tree(data), rng).encode(errors="surrogatepass")[:LARGEST]
    except (ValueError, RecursionError, OverflowError):
        return mutate_bytes(data, rng)


# TOML.


def toml(value: Any, top: bool = True) -> str:
    """Return a value as TOML: tables inline, one line for each entry of the file."""
    if isinstance(value, dict):
        pairs = [f"{json.dumps(name)} = {toml(each, False)}" for name, each in value.items()]
        return "\n".join(pairs) if top else f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(toml(each, False) for each in value)}]"
    if isinstance(value, str | bool) or value is None:
        return json.dumps("" if value is None else value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return repr(value) if isinstance(value, int | float) else str(value)


@lru_cache(REMEMBERED)
def _toml_tree(data: bytes) -> Any:
    return tomllib.loads(data.decode())


def mutate_toml(data: bytes, rng: Random) -> bytes:
    """Change a TOML file, most often as a tree."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng)
    try:
        tree, used = _toml_tree(data), []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            tree = mutate_tree(tree, rng, RAW_TOML, used)
        text = toml(tree if isinstance(tree, dict) else {"x": tree})
    except (ValueError, RecursionError, OverflowError):
        return mutate_bytes(data, rng)
    for number, raw in enumerate(used):
        text = text.replace(f'"@@{number}@@"', raw)
    return text.encode(errors="surrogatepass")[:LARGEST]


# safetensors.


def join_safetensors(header: bytes, rest: bytes) -> bytes:
    """Return a safetensors file of a header and the bytes of its arrays."""
    return len(header).to_bytes(8, "little") + header + rest


def split_safetensors(data: bytes) -> tuple[bytes, bytes]:
    """Return the header of a safetensors file, and the rest."""
    end = 8 + int.from_bytes(data[:8], "little")
    return data[8:end], data[end:]


def sign_safetensors(data: bytes) -> bytes:
    """Return a file of Dropin with the checksum that its content has, if it can be read."""
    header, rest = split_safetensors(data)
    try:
        values = json.loads(header)
        described = values["__metadata__"]["dropin"].partition(" ")[2]
        arrays = safetensors.numpy.load(data)
        values["__metadata__"]["dropin"] = f"{checksum(arrays, described)} {described}"
        return join_safetensors(json.dumps(values).encode(), rest)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        return data
    except RecursionError:
        return data


def mutate_safetensors(data: bytes, rng: Random) -> bytes:
    """Change header, description, arrays, or single bytes; mostly sign it anew."""
    header, rest = split_safetensors(data)
    chance = rng.random()
    if chance < 0.1:
        return mutate_bytes(data, rng)
    try:
        values = json.loads(header)
        if chance < 0.6:
            described = values["__metadata__"]["dropin"].partition(" ")[2]
            changed = mutate_json(described.encode(), rng).decode(errors="replace")
            values["__metadata__"]["dropin"] = f"x {changed}"
            header = json.dumps(values).encode()
        elif chance < 0.85:
            header = _mutate_json(values, rng).encode(errors="surrogatepass")
        else:
            rest = mutate_bytes(rest, rng)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return mutate_bytes(data, rng)
    made = join_safetensors(header, rest)
    return (made if rng.random() < 0.15 else sign_safetensors(made))[:LARGEST]


# Lines and tables.


def sign_lines(lines: list[bytes]) -> bytes:
    """Return a recording of lines without checksums."""
    check, out = 0, []
    for line in lines:
        check = zlib.crc32(line, check)
        out.append(line[:-1] + b',"check":%d}\n' % check)
    return b"".join(out)


_CHECK = re.compile(rb',"check":\d+\}$')


def mutate_recording(data: bytes, rng: Random) -> bytes:
    """Change a line of a recording as a tree, or the order of lines; mostly sign it anew."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng)
    lines = [_CHECK.sub(b"}", line) for line in data.split(b"\n")[:-1]]
    if not lines:
        return mutate_bytes(data, rng)
    place, chance = rng.randrange(len(lines)), rng.random()
    if rng.random() < 0.4:
        place = 0
    if chance < 0.8:
        lines[place] = mutate_json(lines[place], rng)
    elif chance < 0.87:
        del lines[place]
    elif chance < 0.94:
        lines.insert(place, rng.choice(lines))
    else:
        lines[place] = mutate_bytes(lines[place], rng)
    if rng.random() < 0.1:
        return b"\n".join(lines)[:LARGEST]
    return sign_lines(lines)[:LARGEST]


CELLS = (
    "", "0", "-1", "1e3", "nan", "inf", "1_000", "٣", "²", "9" * 30, "9" * 5000, "x", '"', "=1+1",
    "None", "1.5", "0x10", " 7 ", "\x00", "strangers", "partners", "greedy", "sampled", "step",
)  # fmt: skip


def mutate_table(data: bytes, rng: Random) -> bytes:
    """Change cells, rows and columns of a CSV table."""
    if rng.random() < 0.15:
        return mutate_bytes(data, rng)
    rows = [line.split(b",") for line in data.split(b"\n")]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice(rows[:1] if rng.random() < 0.2 else rows)
        place = rng.randrange(len(row))
        match rng.randrange(7):
            case 0 | 1 | 2:
                row[place] = rng.choice(CELLS).encode()
            case 3:
                row[place] = str(_word(rng)).encode()
            case 4 if len(row) > 1:
                del row[place]
            case 5:
                row.insert(place, rng.choice(CELLS).encode())
            case _:
                rows.insert(rng.randrange(len(rows)), list(rng.choice(rows)))
    return b"\n".join(b",".join(row) for row in rows)[:LARGEST]


def mutate_words(data: bytes, rng: Random) -> bytes:
    """Change lines of `name=value`, as of `--set`."""
    if rng.random() < 0.1:
        return mutate_bytes(data, rng)
    lines = data.decode(errors="replace").split("\n")
    place = rng.randrange(len(lines))
    name, sign, value = lines[place].partition("=")
    match rng.randrange(6):
        case 0:
            lines.append(f"{_word(rng)}.{_word(rng)}={_word(rng)}")
        case 1:
            name = f"{name}.{_word(rng)}" * rng.choice((1, 1, 500))
        case 2:
            name = str(_word(rng))
        case 3:
            value = rng.choice(RAW)
        case 4:
            value = _mutate_json(_value(value), rng)
        case _:
            value = _change_text(value, rng)
    lines[place] = f"{name}{sign or '='}{value}"
    if rng.random() < 0.1:
        lines.pop(rng.randrange(len(lines)))
    return "\n".join(lines).encode(errors="replace")[:LARGEST]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
