from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils.data import DataLoader

from liere.data.examples import Batch, ExampleSet
from liere.data.facts import DataFacts


class Squares(ExampleSet):
    """Images of one pixel whose value is its squared index, or the random bits if given."""

    facts = DataFacts(("even", "odd"), 1, (1, 1), (0.0,), (1.0,))

    def __len__(self) -> int:
        return 5

    def load(self, indices: Sequence[int], bits: torch.Tensor | None = None) -> Batch:
        ids = torch.tensor(list(indices))
        values = ids**2 if bits is None else bits
        return Batch(ids, values.float().view(-1, 1, 1, 1), ids % 2)


def test_batches_are_of_any_numbers_and_as_they_are_tested():
    for places in ([3, 1], (3, 1), torch.tensor([3, 1]), iter([3, 1])):
        images, labels = Squares().batch(places)
        assert images.flatten().tolist() == [9, 1]
        assert labels.tolist() == [1, 1]


def test_an_example_is_an_image_and_a_plain_label():
    image, label = Squares()[3]
    assert (image.shape, image.item(), label) == ((1, 1, 1), 9, 1)
    assert type(label) is int


def test_a_loader_of_torch_reads_it():
    images, labels = next(iter(DataLoader(Squares(), batch_size=5)))
    assert images.flatten().tolist() == [0, 1, 4, 9, 16]
    assert labels.tolist() == [0, 1, 0, 1, 0]


def test_nothing_is_skipped_unless_it_is_said():
    assert not Squares().can_skip
