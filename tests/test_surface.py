"""The public surface: what is public says so, and the examples in docstrings run."""

import doctest
import importlib
import inspect
import pkgutil

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
