"""Encodings that rotate queries and keys: `R(p) = exp(sum_d p_d A_d)` for some generators `A_d`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from liere.encodings.cache import RotationCache
from liere.encodings.contract import PositionEncoding, Rotations, TransformerShape
from liere.encodings.nested import has_nested, rotate_nested
from liere.errors import InputError, InputTypeError, whole_number
from liere.positions import check_positions
from liere.rotations import check_shapes, position_rotations, rotate_together
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
            if whole_number(argument, value) < 1:
                raise InputError(f"{argument} must be at least 1, got {value}")
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

        Returns:
            The rotated queries and keys.

        Raises:
            TypeError: If positions are not real numbers in fp32, fp64 or integers, or all are None.
            ValueError: If shapes do not match, positions are not finite, or the layer does not exist.
        """
        if has_nested(q, k, positions, k_positions):
            if num_prefix_tokens or k_num_prefix_tokens:
                raise InputError(
                    f"num_prefix_tokens={num_prefix_tokens or k_num_prefix_tokens} does not work with nested tensors: "
                    "leave it out, and give prefix tokens position 0, which rotates nothing"
                )
            return rotate_nested(lambda *given: self._rotate(*given, layer, 0, 0), q, k, positions, k_positions)
        with known_sizes():
            return self._rotate(q, k, positions, k_positions, layer, num_prefix_tokens, k_num_prefix_tokens)

    def _rotate(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None,
        k_positions: Tensor | None,
        layer: int,
        num_prefix_tokens: int,
        k_num_prefix_tokens: int | None,
    ) -> tuple[Tensor, Tensor]:
        k_prefix = num_prefix_tokens if k_num_prefix_tokens is None else k_num_prefix_tokens
        if positions is None:
            return q, self._rotate_keys(k, k_positions, layer, k_prefix)
        check_positions(positions, self.ndim)
        rotations = k_rotations = self._layer(positions, layer)
        if k_positions is not None:
            check_positions(k_positions, self.ndim, name="k_positions")
            k_rotations = self._layer(k_positions, layer)
        self._check("q", q, rotations, num_prefix_tokens)
        own = "positions" if k_positions is None and k.shape[-2] == q.shape[-2] else "k_positions"
        self._check("k", k, k_rotations, k_prefix, prefix_name="k_num_prefix_tokens", positions_name=own)
        if k_rotations is rotations and (q.shape, q.dtype, k_prefix) == (k.shape, k.dtype, num_prefix_tokens):
            q, k = rotate_together([q, k], rotations, num_prefix_tokens)
            return q, k
        (q,), (k,) = rotate_together([q], rotations, num_prefix_tokens), rotate_together([k], k_rotations, k_prefix)
        return q, k

    def _rotate_keys(self, k: Tensor, positions: Tensor | None, layer: int, num_prefix_tokens: int) -> Tensor:
        """Return rotated keys for queries without positions."""
        if positions is None:
            raise InputTypeError(
                "positions and k_positions are both None: pass the positions of the tokens, or leave out the encoding"
            )
        check_positions(positions, self.ndim, name="k_positions")
        rotations = self._layer(positions, layer)
        names = {"prefix_name": "k_num_prefix_tokens", "positions_name": "k_positions"}
        self._check("k", k, rotations, num_prefix_tokens, **names)
        return rotate_together([k], rotations, num_prefix_tokens)[0]

    def layer_rotations(self, positions: Float[Tensor, "*batch tokens ndim"], depth: int) -> Iterator[Rotations]:
        """Yield each layer's own rotations; layers that share generators share the tensor.

        In eval mode without gradients, rotations are cached for as long as positions and generators stay the same. With
        `recompute` and gradients, each layer gets a function that makes its rotations.
        """
        check_positions(positions, self.ndim)
        layers = 1 if self.share_layers else depth
        generators = self._generators(range(layers), positions)
        rotations: Iterator[Any]
        if self.recompute and not self.share_layers and self._wants_gradients(positions, generators):
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

    def _check(self, name: str, x: Tensor, rotations: Tensor, num_prefix_tokens: int, **names: str) -> None:
        if x.shape[-1] != self.head_dim:
            raise InputError(
                f"{name} has head_dim {x.shape[-1]}, but this encoding was built with head_dim={self.head_dim}"
            )
        check_shapes(x, rotations, num_prefix_tokens, name=name, **names)

    def _layer(self, positions: Tensor, layer: int) -> Tensor:
        return next(self._rotations(positions, self._generators([layer], positions), key=layer))

    def _rotations(self, positions: Tensor, generators: Tensor, key: int | None = None) -> Iterator[Tensor]:
        """Yield the rotations of each layer, from the cache at inference."""
        if self._wants_gradients(positions, generators) or self.training or not values_are_visible(generators):
            return position_rotations(positions, generators)
        return iter(self._kept_rotations(positions, generators, key))

    def _generators(self, layers: Iterable[int], positions: Tensor) -> Tensor:
        """Return the generators `[layers, ndim, heads, blocks, b, b]`, on the positions' device, in fp32 or higher."""
        dtypes = [positions.dtype, torch.float32, *(p.dtype for p in self.parameters())]
        dtype = functools.reduce(torch.promote_types, dtypes)
        return torch.stack([self.skew_generators(layer) for layer in layers]).to(positions.device, dtype)

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
