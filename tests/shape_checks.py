"""The type checker that the tests put into every signature of the library."""

from beartype import BeartypeConf, beartype

# An int is welcome where a float is asked for, as type checkers have it.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
