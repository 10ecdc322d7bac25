"""Convert a timm model with RoPE to LieRE without changing its logits, then fine-tune it: where are the two squares?

Needs the extra: pip install 'liere[timm]'.
"""

import torch
from torch.nn.functional import cross_entropy

from liere.integrations.timm import convert, widen  # isort: skip
import timm  # isort: skip
from timm.optim import create_optimizer_v2  # isort: skip


def squares(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images `[batch, 3, 32, 32]` of a light and a dark square, and whether the light one is further right."""
    images, labels = torch.zeros(batch, 3, 32, 32), torch.zeros(batch, dtype=torch.int64)
    for number, image in enumerate(images):
        (light_row, light), (dark_row, dark) = (torch.randperm(8)[:2].tolist() for _ in range(2))
        if light == dark:
            dark = (dark + 3) % 8
        for row, column, color in ((light_row, light, 1.0), (dark_row, dark, -1.0)):
            image[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += color
        labels[number] = light > dark
    return images, labels


def train(model: torch.nn.Module, steps: int) -> float:
    """Train a model, and return its accuracy on new images."""
    optimizer = create_optimizer_v2(model.train(), opt="adamw", lr=3e-3, weight_decay=0.01)
    for _ in range(steps):
        images, labels = squares(64)
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    images, labels = squares(256)
    with torch.no_grad():
        return (model.eval()(images).argmax(1) == labels).float().mean().item()


torch.manual_seed(0)
model = timm.create_model(
    "vit_small_patch16_rope_mixed_224",
    img_size=32,
    patch_size=4,
    embed_dim=32,
    depth=2,
    num_heads=2,
    num_classes=2,
    init_values=None,
)
print(f"RoPE-Mixed: accuracy {train(model, 60):.2f}")

planes = convert(model, "rope_mixed", start="rope")  # the frequencies are generators now
converted = widen(planes, 8)  # and share blocks of 8, in which training can mix them
images, _ = squares(8)
with torch.no_grad():
    print(f"largest change of a logit: {(converted(images) - model(images)).abs().max().item():.0e}")

before = converted.encoding.generators.detach().clone()
print(f"LieRE_8, fine-tuned: accuracy {train(converted, 30):.2f}")
new = (converted.encoding.generators != 0) & (before == 0)
print(f"entries of the generators that were zero and are learned now: {new.sum().item()}")
