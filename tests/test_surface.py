"""The public surface: what is public says so, and the examples in docstrings run."""

import ast
import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import dropin


def modules():
    """Return the names of all modules but the private ones and `__main__`."""
    for each in pkgutil.walk_packages(dropin.__path__, "dropin."):
        if not any(part.startswith("_") for part in each.name.split(".")[1:]):
            yield each.name


NAMES = sorted(modules())


def test_the_names_of_the_package_are_there():
    for name in dropin.__all__:
        assert getattr(dropin, name) is not None
    assert sorted(dropin._HOMES) == sorted(dropin.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dropin.nothing  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_a_module_declares_what_is_public(name):
    module = importlib.import_module(name)
    own = [
        each
        for each, value in vars(module).items()
        if not each.startswith("_") and getattr(value, "__module__", None) == name
    ]
    if not own:  # A package that only registers, or only has a docstring.
        return
    declared = getattr(module, "__all__", None)
    assert declared is not None, f"{name} has no __all__"
    for each in declared:
        assert hasattr(module, each), f"{name} has no {each}"


@pytest.mark.parametrize("name", NAMES)
def test_public_functions_and_classes_have_docstrings(name):
    module = importlib.import_module(name)
    for each in getattr(module, "__all__", ()):
        value = getattr(module, each)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name}.{each} has no docstring"


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


SOURCE = Path(dropin.__file__).parent


@dataclass(frozen=True)
class Definition:
    """A public function or method, as the source has it."""

    place: str
    """As `dropin.env.AdHocEnv.step`."""
    arguments: frozenset[str]
    """Without `self` and `cls`."""
    docstring: str
    """For `__init__`, that of the class."""

    @property
    def has_args(self) -> bool:
        return "Args:" in self.docstring


def definitions(
    node: ast.Module | ast.ClassDef, place: str, public: Collection[str]
) -> Iterator[Definition]:
    """Return the public functions of a module or a class, and the methods of its classes."""
    in_class = isinstance(node, ast.ClassDef)
    for each in node.body:
        if isinstance(each, ast.ClassDef) and each.name in public:
            methods = [name for name in vars_of(each) if not name.startswith("_")]
            yield from definitions(each, f"{place}.{each.name}", [*methods, "__init__", "__call__"])
        elif isinstance(each, ast.FunctionDef) and each.name in public:
            given = each.args
            names = [arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            names += [arg.arg for arg in (given.vararg, given.kwarg) if arg]
            if in_class and "staticmethod" not in map(ast.unparse, each.decorator_list):
                names = names[1:]
            documented = node if each.name == "__init__" else each
            doc = ast.get_docstring(documented) or ""
            yield Definition(f"{place}.{each.name}", frozenset(names), doc)


def vars_of(node: ast.ClassDef) -> list[str]:
    return [each.name for each in node.body if isinstance(each, ast.FunctionDef)]


def bases_of(node: ast.ClassDef) -> list[str]:
    """Return the names of the base classes, without modules and type arguments."""
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def test_public_functions_say_what_their_arguments_are():
    """Every public function has a docstring, with a section "Args" if it has several arguments.

    Exempt is what fills a role that is documented once, at the base class or the protocol: a method
    (or a function of a module that is used like an object, such as a renderer) whose arguments are
    all in the section "Args" of a method of the same name there.
    """
    found: list[Definition] = []
    classes: list[ast.ClassDef] = []
    for name in NAMES:
        file = SOURCE.joinpath(*name.split(".")[1:])
        tree = ast.parse(
            (own if (own := file.with_suffix(".py")).exists() else file / "__init__.py").read_text()
        )
        found += definitions(tree, name, getattr(importlib.import_module(name), "__all__", ()))
        classes += [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    assert len(found) > 700
    assert not [each.place for each in found if not each.docstring]
    contracts = {base for each in classes for base in bases_of(each)}
    contracts |= {each.name for each in classes if "Protocol" in bases_of(each)}
    roles: dict[str, list[frozenset[str]]] = {}
    for each in found:
        owner, name = each.place.split(".")[-2:]
        if each.has_args and owner in contracts and name != "__init__":
            roles.setdefault(name, []).append(each.arguments)
    missing = {
        each.place
        for each in found
        if len(each.arguments) > 1
        and not each.has_args
        and not any(each.arguments <= role for role in roles.get(each.place.split(".")[-1], ()))
    }
    assert not missing
