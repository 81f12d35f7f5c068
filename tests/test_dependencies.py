"""What Dropin depends on: pinned, declared, licensed, imported late, and what its files hold."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import packages_distributions, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dropin

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path(dropin.__file__).parent


def _load():
    path = ROOT / "docs" / "dependencies.py"
    spec = importlib.util.spec_from_file_location("dropin_docs_dependencies", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dependencies = _load()
ONLY_WITH_FUZZER = {"atheris"}
"""Installed by `make fuzz` alone, so they need not be there; they need no other packages."""


def closure(extra: str | None) -> set[str]:
    needs = dependencies.requirements(extra)
    return dependencies.closure(
        each for each in needs if Requirement(each).name not in ONLY_WITH_FUZZER
    )


def test_every_package_of_every_extra_is_pinned_and_nothing_else():
    reached = set().union(*(closure(extra) for extra in (None, *dependencies.extras())))
    pinned = dependencies.pinned()
    assert len(reached) > 80
    assert reached - set(pinned) == set()
    assert set(pinned) - reached - ONLY_WITH_FUZZER == set()
    assert {name: version(name) for name in reached} == {name: pinned[name] for name in reached}


def test_a_package_that_is_not_pinned_is_noticed():
    assert "flask" not in dependencies.pinned()
    assert dependencies.closure(["dropin-rl[plot]"]) > {"matplotlib", "pillow", "numpy"}
    assert "pillow" not in dependencies.closure(["dropin-rl"])


def test_all_licences_can_be_used_beside_apache():
    for name in set().union(*(closure(extra) for extra in (None, *dependencies.extras()))):
        assert dependencies.is_compatible(dependencies.licence(name)), name
    for wrong in ("GPL-3.0-only", "AGPL-3.0", "unknown", "MIT AND GPL-2.0", "Proprietary"):
        assert not dependencies.is_compatible(wrong)


@pytest.mark.skipif(sys.platform != "linux", reason="The page is that of Linux.")
def test_the_page_is_current():
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("The page has the extra of `make fuzz` too.")
    assert dependencies.PAGE.read_text() == dependencies.page(), "run python docs/dependencies.py"


# Imports.


def imports(tree: ast.Module, *, everywhere: bool) -> set[str]:
    """Return the packages that a module imports, at once or everywhere."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if everywhere or not late:
            waiting += ast.iter_child_nodes(node)
    return found - set(sys.stdlib_module_names) - {"dropin", ""}


def declared(*extras: str | None) -> set[str]:
    """Return the packages that may be imported because an extra declares them itself."""
    needs = [each for extra in extras for each in dependencies.requirements(extra)]
    names = {canonicalize_name(Requirement(each).name) for each in needs}
    return {
        package
        for package, distributions in packages_distributions().items()
        if names & {canonicalize_name(each) for each in distributions}
    }


OPTIONAL = ("plot", "tensorboard", "wandb", "envs", "cluster", "web", "parquet")
MODULES = sorted(SOURCE.rglob("*.py"))


def test_nothing_is_imported_that_is_not_declared():
    allowed = declared(None, *OPTIONAL)
    for path in MODULES:
        found = imports(ast.parse(path.read_text()), everywhere=True)
        assert found <= allowed, (path, found - allowed)
    assert imports(ast.parse("def f():\n import flask"), everywhere=True) == {"flask"}
    assert imports(ast.parse("def f():\n import flask"), everywhere=False) == set()


NEED_EXTRAS = (
    "dropin.arena.connection", "dropin.arena.patience", "dropin.arena.security",
    "dropin.arena.server", "dropin.arena.hub", "dropin.arena.study_desk", "dropin.interop.",
    "dropin.experiments.cluster",
)  # fmt: skip
"""Modules that need an optional package; others import them late."""

_WITHOUT_EXTRAS = """
import importlib, importlib.abc, json, pkgutil, sys
blocked = set(json.loads(sys.argv[1]))
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refuse())
import dropin
failed = []
for each in pkgutil.walk_packages(dropin.__path__, "dropin."):
    if each.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(each.name)
    except ImportError:
        failed.append(each.name)
env = dropin.make("lbf", team_limit=3)
print(json.dumps(failed))
"""


def test_optional_packages_are_imported_late():
    """All modules but those of an extra can be imported without any optional package."""
    blocked = declared(*OPTIONAL) - declared(None)
    assert {"matplotlib", "PIL", "starlette", "uvicorn", "ray", "wandb", "gymnasium"} <= blocked
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _WITHOUT_EXTRAS, json.dumps(sorted(blocked))],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    failed = json.loads(found.stdout.splitlines()[-1])
    odd = [name for name in failed if not f"{name}.".startswith(NEED_EXTRAS)]
    assert odd == []
    assert "dropin.arena.server" in failed


# What is built. These need the network.

IN_WHEEL = re.compile(
    r"dropin/(.*\.py|py\.typed|.*\.safetensors|.*\.json|.*/tasks/[^/]+\.toml"
    r"|arena/static/[^/]+\.(js|css|html|svg))|dropin_rl-[^/]+\.dist-info/.*"
)
NEVER = re.compile(
    r"__pycache__|\.pyc$|(^|/)\.(venv|git|cache|env)(/|$)|^(runs|campaign|zoo|demo|fuzz-state)/"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Build the wheel and the source distribution with hatchling."""
    out = tmp_path_factory.mktemp("built")
    tool = out / "tool"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "install", "--target", tool, "hatchling"], check=True, timeout=300)
    for kind in ("wheel", "sdist"):
        code = (
            f"import sys; sys.path.insert(0, {str(tool)!r}); from hatchling.cli import hatchling;"
        )
        code += (
            f"sys.argv = ['hatchling', 'build', '-t', {kind!r}, '-d', {str(out)!r}]; hatchling()"
        )
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=300)
    return out


def tracked() -> set[str]:
    found = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(found.stdout.splitlines())


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    for name in names:
        assert IN_WHEEL.fullmatch(name), name
        assert not NEVER.search(name), name
    own = {f"src/{name}" for name in names if name.startswith("dropin/")}
    assert own == {name for name in tracked() if name.startswith("src/dropin/")}
    for needed in ("dropin/arena/static/index.html", "dropin/zoo/agents/lbf/gpl-q/run.json"):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_source_distribution_holds_what_is_tracked(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        members = file.getmembers()
    names = {each.name.partition("/")[2] for each in members}
    assert all(each.isfile() and not each.name.startswith(("/", "..")) for each in members)
    assert not [name for name in names if NEVER.search(name)]
    assert names - {"PKG-INFO"} <= tracked()
    assert {"src/dropin/__init__.py", "pyproject.toml", "LICENSE", "constraints.txt"} <= names


@pytest.mark.slow
def test_everything_installs_without_a_compiler(built):
    """All packages of all extras are there as wheels, in the pinned versions."""
    (wheel,) = built.glob("*.whl")
    report = built / "report.json"
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--dry-run",
         "--ignore-installed", "--only-binary", ":all:", "--constraint", ROOT / "constraints.txt",
         "--report", report, f"{wheel}[dev,fuzz]"],
        check=True, timeout=900,
    )  # fmt: skip
    found = {
        canonicalize_name(each["metadata"]["name"]): each["metadata"]["version"]
        for each in json.loads(report.read_text())["install"]
    }
    assert found.pop(canonicalize_name("dropin-rl")) == dropin.__version__
    assert found == dependencies.pinned()
