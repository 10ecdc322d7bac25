"""Classify 3-D scans whose voxels are longer along one axis: is a box closer to a cube, or flat?

Scanners differ in the distance between slices. Voxels alone cannot tell a cube in thick slices from a flat box in thin
ones; the model is given the voxel size of each scan.
"""

import torch
from torch.nn.functional import cross_entropy

import liere


def scans(batch: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scans `[batch, 1, 8, 8, 8]` of boxes, their voxel sizes in mm, and whether the box is a cube."""
    volumes, spacing = torch.zeros(batch, 1, 8, 8, 8), torch.ones(batch, 3)
    labels = torch.randint(2, (batch,))
    for volume, voxel, label in zip(volumes, spacing, labels, strict=True):
        voxel[0] = 1.0 if torch.rand(()) < 0.5 else 2.0  # thin or thick slices
        depth = (4 if label else 2) / voxel[0]  # 4 mm or 2 mm
        z, y, x = (2 * int(torch.randint(3, ())) for _ in range(3))
        volume[0, z : z + int(depth), y : y + 4, x : x + 4] = 1
    return volumes, spacing, labels


torch.manual_seed(0)
model = liere.create_model(
    encoding="rope_mixed",
    image_size=(8, 8, 8),
    patch_size=(1, 4, 4),
    in_channels=1,
    num_classes=2,
    dim=48,
    depth=2,
    heads=2,
    mlp_dim=96,
    spacing=(1.0, 1.0, 1.0),  # positions are relative to voxels of 1 mm
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(120):
    volumes, spacing, labels = scans(32)
    loss = cross_entropy(model(volumes, spacing=spacing), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

model.eval()
with torch.no_grad():
    volumes, spacing, labels = scans(256)
    accuracy = (model(volumes, spacing=spacing).argmax(1) == labels).float().mean().item()
    blind = (model(volumes).argmax(1) == labels).float().mean().item()
print(f"accuracy without voxel sizes {blind:.2f}")
print(f"accuracy after 120 steps: {accuracy:.2f}")
