"""The run-time check of shapes and types that the tests switch on for the whole package."""

from beartype import BeartypeConf, beartype

# An int will do where a float is asked for, as for every type checker.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
