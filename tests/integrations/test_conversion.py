"""Arguments of conversions."""

from __future__ import annotations

import pytest

from liere import LieRE
from liere.encodings import TransformerShape
from liere.integrations.conversion import check_start, describe, make_encoding

SHAPE = TransformerShape((4, 4), 32, 2, 3)


def test_encodings_are_made_or_copied():
    made = make_encoding("liere4", SHAPE)
    assert (made.ndim, made.head_dim, made.num_heads, made.depth, made.block_size) == (2, 16, 2, 3, 4)
    own = LieRE(2, 16, num_heads=2, depth=3)
    copied = make_encoding(own, SHAPE)
    assert copied is not own
    assert copied.generators is not own.generators


def test_errors():
    with pytest.raises(ValueError, match="encoding 'absolute' does not rotate queries and keys: use 'liere8'"):
        make_encoding("absolute", SHAPE)
    with pytest.raises(ValueError, match="encoding 'visionllama' has no generators to learn"):
        make_encoding("visionllama", SHAPE)
    with pytest.raises(ValueError, match="head_dim"):
        make_encoding(LieRE(2, 8, num_heads=2, depth=3), SHAPE)
    with pytest.raises(ValueError, match="unknown start 'ropes': did you mean 'rope'"):
        check_start("ropes")
    check_start("identity")
    assert describe(LieRE(2, 8)) == "a model of type LieRE"
