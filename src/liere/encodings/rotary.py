"""Encodings that rotate queries and keys: `R(p) = exp(sum_d p_d A_d)` for some generators `A_d`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from liere.devices import send
from liere.encodings.cache import RotationCache
from liere.encodings.contract import PositionEncoding, Rotations, StreamedRotations, TransformerShape
from liere.encodings.nested import check_no_prefix, has_nested, rotate_nested
from liere.errors import InputError, InputTypeError, check_least, check_switches, whole_number
from liere.positions import check_positions
from liere.rotations import (
    check_shapes,
    fused_is_faster,
    position_rotations,
    rotate_by_positions,
    rotate_together,
    streams_by_itself,
)
from liere.rotations.buffers import drop_buffers
from liere.shapes import Float, Real
from liere.sharding import memory_may_be_reused
from liere.tracing import known_sizes, values_are_visible

__all__ = ["RotaryEncoding"]


class RotaryEncoding(PositionEncoding):
    """Base class of the rotary encodings. A subclass defines the generators in `skew_generators`.

    Args:
        ndim: Number of position axes.
        head_dim: Width of a head.
        block_size: Size of the diagonal blocks of a generator.
        num_blocks: Number of blocks; dimensions beyond them are not rotated.
        num_heads: Number of heads per layer; with 1, any number of heads can share the rotations.
        depth: Number of layers.
        share_heads: Whether all heads of a layer have the same generators.
        share_layers: Whether all layers have the same generators.
        recompute: Whether a transformer recomputes the rotations in its backward pass instead of storing them. Layers
            that share rotations store one set.
    """

    def __init__(
        self,
        ndim: int,
        head_dim: int,
        *,
        block_size: int,
        num_blocks: int,
        num_heads: int = 1,
        depth: int = 1,
        share_heads: bool = False,
        share_layers: bool = False,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        for argument, value in {"ndim": ndim, "head_dim": head_dim, "num_heads": num_heads, "depth": depth}.items():
            check_least(argument, whole_number(argument, value), 1)
        check_switches(share_heads=share_heads, share_layers=share_layers, recompute=recompute)
        self.ndim = ndim
        self.head_dim = head_dim
        self.block_size = block_size
        self.num_blocks = num_blocks
        self.num_heads = num_heads
        self.depth = depth
        self.share_heads = share_heads
        self.share_layers = share_layers
        self.recompute = recompute
        self._cache = RotationCache()

    def skew_generators(self, layer: int = 0) -> Float[Tensor, "ndim heads blocks b b"]:
        """Return the generators of a layer, in fp32 or higher; `heads` is 1 if heads share them."""
        raise NotImplementedError

    def rotations(
        self, positions: Real[Tensor, "*batch tokens ndim"], layer: int = 0
    ) -> Float[Tensor, "*batch num_heads tokens blocks b b"]:
        """Return the rotation of every head, token and block in a layer, in fp32 or fp64.

        If heads share generators, the result is an expanded view.

        Raises:
            TypeError: If positions are not a tensor of real numbers.
            ValueError: If positions have the wrong number of axes or are not finite, or the layer does not exist.
        """
        check_positions(positions, self.ndim)
        return self._expand(self._layer(positions, layer))

    def forward(
        self,
        q: Float[Tensor, "*batch q_heads q_tokens head_dim"],
        k: Float[Tensor, "*batch k_heads k_tokens head_dim"],
        positions: Real[Tensor, "*pos_batch q_positions ndim"] | None,
        k_positions: Real[Tensor, "*k_pos_batch k_positions ndim"] | None = None,
        *,
        layer: int = 0,
        num_prefix_tokens: int = 0,
        k_num_prefix_tokens: int | None = None,
        stream: bool | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return queries and keys rotated according to their positions, for use in any attention function.

        Args:
            q: Queries.
            k: Keys. Queries, keys and positions may also be nested tensors with `layout=torch.jagged`.
            positions: Positions of the queries, one set for the whole batch or one per example; None, with
                `k_positions`, if only the keys have positions: the queries are then returned unchanged.
            k_positions: Positions of the keys, for cross-attention; by default those of the queries. If only the
                queries have positions, use `apply_rotations(q, rope.rotations(positions))`.
            layer: Index of the layer whose generators are used.
            num_prefix_tokens: Number of leading tokens without a position (CLS, registers), which are not rotated.
            k_num_prefix_tokens: The same for the keys; by default as for the queries.
            stream: Whether to make, use and drop the rotations a few tokens at a time, in the backward pass as well, so
                that memory does not grow with their number. By default where this is faster (each member of the batch
                has its own positions) or the rotations would take more than 256 MB.

        Returns:
            The rotated queries and keys.

        Raises:
            TypeError: If positions are not real numbers in fp32, fp64 or integers, or all are None.
            ValueError: If shapes do not match, positions are not finite, or the layer does not exist.
        """
        k_prefix = num_prefix_tokens if k_num_prefix_tokens is None else k_num_prefix_tokens
        if has_nested(q, k, positions, k_positions):
            check_no_prefix(num_prefix_tokens, k_prefix)
            rotate = functools.partial(self._rotate_both, layer=layer, num_prefix_tokens=0, k_prefix=0, stream=stream)
            return rotate_nested(rotate, q, k, positions, k_positions)
        with known_sizes():
            return self._rotate_both(q, k, positions, k_positions, layer, num_prefix_tokens, k_prefix, stream)

    def _rotate_both(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None,
        k_positions: Tensor | None,
        layer: int,
        num_prefix_tokens: int,
        k_prefix: int,
        stream: bool | None,
    ) -> tuple[Tensor, Tensor]:
        is_same = k_positions is None and (q.shape, q.dtype, num_prefix_tokens) == (k.shape, k.dtype, k_prefix)
        if positions is not None and is_same:
            q, k = self._rotate("q", [q, k], positions, layer, num_prefix_tokens, stream)
            return q, k
        if positions is not None:
            (q,) = self._rotate("q", [q], positions, layer, num_prefix_tokens, stream)
        of_keys = positions if k_positions is None else k_positions
        if of_keys is None:
            raise InputTypeError(
                "positions and k_positions are both None: pass the positions of the tokens, or leave out the encoding"
            )
        own = "positions" if k_positions is None and k.shape[-2] == q.shape[-2] else "k_positions"
        names = {"prefix_name": "k_num_prefix_tokens", "positions_name": own}
        (k,) = self._rotate("k", [k], of_keys, layer, k_prefix, stream, **names)
        return q, k

    def _rotate(
        self,
        name: str,
        xs: list[Tensor],
        positions: Tensor,
        layer: int,
        num_prefix_tokens: int,
        stream: bool | None,
        **names: str,
    ) -> list[Tensor]:
        check_positions(positions, self.ndim, name=names.get("positions_name", "positions"))
        generators = self._generators([layer], positions)
        self._check(name, xs[0], positions, generators, num_prefix_tokens, **names)
        if streams_by_itself(positions, generators[0]) if stream is None else stream:
            return rotate_by_positions(xs, positions.to(generators.dtype), generators[0], num_prefix_tokens)
        return rotate_together(xs, next(self._rotations(positions, generators, key=layer)), num_prefix_tokens)

    def layer_rotations(self, positions: Float[Tensor, "*batch tokens ndim"], depth: int) -> Iterator[Rotations]:
        """Yield each layer's own rotations; layers that share generators share the tensor.

        In eval mode without gradients, rotations are cached for as long as positions and generators stay the same. With
        `recompute` and gradients, each layer gets a function that makes its rotations. If each example has its own
        positions, layers get `StreamedRotations` where this is faster.
        """
        check_positions(positions, self.ndim)
        layers = 1 if self.share_layers else depth
        generators = self._generators(range(layers), positions)
        rotations: Iterator[Any]
        if not self.share_layers and fused_is_faster(positions, generators[0]):
            rotations = (StreamedRotations(positions.to(generators.dtype), A) for A in generators)
        elif self.recompute and not self.share_layers and self._wants_gradients(positions, generators):
            rotations = (functools.partial(_first, positions, generators[n : n + 1]) for n in range(layers))
        else:
            rotations = self._rotations(positions, generators)
        yield from itertools.repeat(next(rotations), depth) if self.share_layers else rotations

    def clear_cache(self) -> None:
        """Clear the rotations cached during inference and free the working memory of this thread.

        This is needed on a GPU after changing generators through `.data`, or changing an attribute that
        `skew_generators` reads, which cannot be detected there. Other changes are detected; on CPU, all are.
        """
        self._cache.clear()
        drop_buffers()

    def train(self, mode: bool = True) -> RotaryEncoding:
        """Switch between training and evaluation mode; switching to training clears the cache."""
        if mode:
            self._cache.clear()
        return super().train(mode)

    def check_fit(self, shape: TransformerShape) -> None:
        """Raise `ValueError` if the number of axes, the head width, or the number of heads or layers differs."""
        for argument, mine, theirs, serves_any in [
            ("ndim", self.ndim, shape.ndim, False),
            ("head_dim", self.head_dim, shape.head_dim, False),
            ("num_heads", self.num_heads, shape.num_heads, self.share_heads),
            ("depth", self.depth, shape.depth, self.share_layers),
        ]:
            if mine != theirs and not serves_any:
                raise InputError(
                    f"encoding was built with {argument}={mine}, but the model has {theirs}: "
                    f"build it with {argument}={theirs}" + _sharing_hint(argument)
                )

    def extra_repr(self) -> str:
        """Show the dimensions."""
        fields = "ndim", "head_dim", "num_heads", "depth", "block_size", "share_heads", "share_layers"
        shown = ", ".join(f"{field}={getattr(self, field)}" for field in fields)
        return shown + ", recompute=True" * self.recompute

    def _check(
        self, name: str, x: Tensor, positions: Tensor, generators: Tensor, num_prefix_tokens: int, **names: str
    ) -> None:
        if x.shape[-1] != self.head_dim:
            raise InputError(
                f"{name} has head_dim {x.shape[-1]}, but this encoding was built with head_dim={self.head_dim}"
            )
        heads, *block = generators.shape[2:]
        # Of the rotations, which need not be made for it, only the shape is looked at.
        rotations = generators.new_empty(()).expand(*positions.shape[:-2], heads, positions.shape[-2], *block)
        check_shapes(x, rotations, num_prefix_tokens, name=name, **names)

    def _layer(self, positions: Tensor, layer: int) -> Tensor:
        return next(self._rotations(positions, self._generators([layer], positions), key=layer))

    def _rotations(self, positions: Tensor, generators: Tensor, key: int | None = None) -> Iterator[Tensor]:
        """Yield the rotations of each layer, from the cache at inference."""
        come_back = positions.shape[:-2].numel() == 1  # positions of each example rarely do
        is_inference = not self.training and not self._wants_gradients(positions, generators)
        if not (come_back and is_inference and values_are_visible(generators)):
            return position_rotations(positions, generators)
        return iter(self._kept_rotations(positions, generators, key))

    def _generators(self, layers: Iterable[int], positions: Tensor) -> Tensor:
        """Return the generators `[layers, ndim, heads, blocks, b, b]`, on the positions' device, in fp32 or higher."""
        dtypes = [positions.dtype, torch.float32, *(p.dtype for p in self.parameters())]
        dtype = functools.reduce(torch.promote_types, dtypes)
        return send(torch.stack([self.skew_generators(layer) for layer in layers]), positions.device, dtype)

    def _wants_gradients(self, *tensors: Tensor) -> bool:
        return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)

    def _kept_rotations(self, positions: Tensor, generators: Tensor, key: int | None) -> list[Tensor]:
        # In host memory the generators themselves are compared, which detects every change. Elsewhere they are new
        # tensors each time, so the tensors they are made from are compared.
        host = generators.device.type == "cpu"
        if not host and memory_may_be_reused():
            return list(position_rotations(positions, generators))
        sources = [positions, generators] if host else [positions, *self.parameters(), *self.buffers()]
        found = self._cache.find(sources, key)
        if found is None:
            # Tensors made in inference mode could not be used in training later.
            with torch.inference_mode(False), torch.no_grad():
                found = list(position_rotations(positions.clone(), generators.clone()))
            self._cache.keep(sources, found, key)
        return found

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> RotaryEncoding:
        self._cache.clear()  # the device or dtype may change
        return super()._apply(fn, recurse)

    def _expand(self, rotations: Tensor) -> Tensor:
        heads = -5
        return rotations.expand(*rotations.shape[:heads], self.num_heads, *rotations.shape[heads + 1 :])


def _first(positions: Tensor, generators: Tensor) -> Tensor:
    return next(position_rotations(positions, generators))


def _sharing_hint(argument: str) -> str:
    sharing = {"num_heads": "share_heads", "depth": "share_layers"}
    return f", or with {sharing[argument]}=True" if argument in sharing else ""
