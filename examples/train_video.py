"""Train a small video transformer for a few steps to tell which way a square moves."""

import torch
from torch.nn.functional import cross_entropy

import liere


def moving_squares(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return clips `[batch, 1, 4, 16, 16]` of a square that moves to the right (0) or down (1)."""
    labels = torch.randint(2, (batch,))
    clips = torch.zeros(batch, 1, 4, 16, 16)
    for clip, label in zip(clips, labels, strict=True):
        row, column = torch.randint(0, 5, (2,)).tolist()
        for t in range(4):
            r, c = (row, column + 3 * t) if label == 0 else (row + 3 * t, column)
            clip[0, t, r : r + 3, c : c + 3] = 1
    return clips, labels


torch.manual_seed(0)
model = liere.create_model(
    encoding="liere8",
    image_size=(4, 16, 16),
    patch_size=(1, 4, 4),
    in_channels=1,
    num_classes=2,
    dim=48,
    depth=2,
    heads=2,
    mlp_dim=96,
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(60):
    clips, labels = moving_squares(32)
    loss = cross_entropy(model(clips), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

clips, labels = moving_squares(256)
accuracy = (model.eval()(clips).argmax(1) == labels).float().mean().item()
print(f"accuracy after 60 steps: {accuracy:.2f}")
