"""The arguments that all conversions take."""

from __future__ import annotations

import pytest
import torch

from liere import LieRE, TransformerShape
from liere.integrations.conversion import check_start, make_encoding

SHAPE = TransformerShape((4, 4), 32, 2, 3)


def test_an_encoding_is_made_by_name_or_copied():
    assert make_encoding("liere8", SHAPE).block_size == 8
    own = LieRE(2, 16, num_heads=2, depth=3)
    copy = make_encoding(own, SHAPE)
    assert copy is not own
    assert torch.equal(copy.generators, own.generators)


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("visionllama", "'?visionllama'? has no generators to learn: use 'liere8'"),
        ("absolute", "'?absolute'? does not rotate queries and keys: use 'liere8'"),
        (LieRE(2, 16, num_heads=2, depth=2), "depth=2, but the model has 3"),
    ],
)
def test_encodings_that_cannot_serve_are_refused(encoding, message):
    with pytest.raises(ValueError, match=message):
        make_encoding(encoding, SHAPE)


def test_a_misspelled_start_gets_a_suggestion():
    check_start("rope")
    with pytest.raises(ValueError, match="unknown start 'ropes': did you mean 'rope'"):
        check_start("ropes")
