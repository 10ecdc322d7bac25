"""The type checker that the tests apply to every signature of the library."""

from beartype import BeartypeConf, beartype

# As in static type checkers, an int is accepted where a float is expected.
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
