"""Compiled and exported models agree with eager ones, in separate processes because shape checks break tracing."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, liere
backend, names = sys.argv[1], sys.argv[2:]
torch.set_num_threads(1)
for name in names:
    torch.manual_seed(0)
    size = dict(dim=32, depth=2, heads=2, mlp_dim=32)
    model = liere.create_model(encoding=name, image_size=16, patch_size=4, num_classes=3, num_registers=1, **size)
    x = torch.randn(2, 3, 16, 16)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    losses = [run(x).square().sum() for run in (model, compiled)]
    gradients = [torch.autograd.grad(loss, list(model.parameters())) for loss in losses]
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)
    for eager, traced in zip(*gradients, strict=True):
        torch.testing.assert_close(eager, traced, rtol=1e-3, atol=1e-4)
    batch = {"x": {0: torch.export.Dim("batch")}}
    exported = torch.export.export(model.eval(), (x,), dynamic_shapes=batch).module()
    more = torch.randn(5, 3, 16, 16)
    torch.testing.assert_close(exported(more), model(more), rtol=1e-4, atol=1e-5)
    torch.compiler.reset()
rope = liere.LieRE(2, 16, num_heads=3).requires_grad_(False)
q, positions = torch.randn(2, 3, 5, 16), torch.rand(5, 2)
compiled = torch.compile(rope, backend="aot_eager", dynamic=True, fullgraph=True)
torch.testing.assert_close(compiled(q, q, positions)[0], rope(q, q, positions)[0], rtol=1e-4, atol=1e-5)
traced = torch.jit.trace(lambda q, p: rope(q, q, p)[0], (q, positions), check_trace=False)
far = 20 * positions  # other norms than while tracing
torch.testing.assert_close(traced(q, far), rope(q, q, far)[0], rtol=1e-3, atol=1e-4)
print("agreed on", *names)
"""


ONNX = """
import sys, warnings
warnings.simplefilter("ignore")
import onnxruntime, torch, liere
folder, names = sys.argv[1], sys.argv[2:]
torch.set_num_threads(1)
for name in names:
    torch.manual_seed(0)
    size = dict(dim=32, depth=2, heads=2, mlp_dim=32)
    model = liere.create_model(encoding=name, image_size=16, patch_size=4, num_classes=3, **size).eval()
    x = torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        expected = model(x)  # the rotations are kept now, and must not get in the way
    path = f"{folder}/{name}.onnx"
    torch.onnx.export(model, (x,), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path)
    (logits,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(logits), expected, rtol=0, atol=1e-5)
print("agreed on", *names)
"""


JIT = """
import sys, warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", message=".*torch.jit.*deprecated", category=DeprecationWarning)
import torch, liere
torch.set_num_threads(1)
for name in sys.argv[2:]:
    torch.manual_seed(0)
    size = dict(dim=32, depth=2, heads=2, mlp_dim=32)
    model = liere.create_model(encoding=name, image_size=16, patch_size=4, num_classes=3, **size).eval()
    traced = torch.jit.trace(model, (torch.randn(2, 3, 16, 16),))
    more = torch.randn(5, 3, 16, 16)
    torch.testing.assert_close(traced(more), model(more), rtol=1e-4, atol=1e-5)
rope = liere.LieRE(2, 16, num_heads=3)
q, positions = torch.randn(2, 3, 5, 16), torch.rand(5, 2)
traced = torch.jit.trace(rope, (q, q, positions))
q = torch.randn(2, 3, 5, 16)
torch.testing.assert_close(traced(q, q, 2 * positions), rope(q, q, 2 * positions), rtol=1e-3, atol=1e-4)
print("agreed on", *sys.argv[2:])
"""


def run(backend: str, *names: str, script: str = SCRIPT) -> str:
    command = [sys.executable, "-c", script, backend, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_traced_models_agree_with_eager_ones():
    assert run("aot_eager", "visionllama", "rope_mixed", "liere8") == "agreed on visionllama rope_mixed liere8\n"


def test_jit_trace_agrees_and_does_not_warn_of_sizes():
    assert run("", "absolute", "rope_mixed", "liere8", script=JIT) == "agreed on absolute rope_mixed liere8\n"


def test_onnxruntime_agrees_with_torch(tmp_path):
    pytest.importorskip("onnxruntime")
    assert run(str(tmp_path), "rope_mixed", "liere8", script=ONNX).endswith("agreed on rope_mixed liere8\n")


EACH = pytest.mark.parametrize(
    "name", ["none", "absolute", "sincos", "visionllama", "rope_mixed", "liere3", "liere5", "liere"]
)


@pytest.mark.slow
@EACH
def test_onnxruntime_agrees_with_torch_on_every_encoding(name, tmp_path):
    pytest.importorskip("onnxruntime")
    assert run(str(tmp_path), name, script=ONNX).endswith(f"agreed on {name}\n")


@pytest.mark.slow
@EACH
def test_models_compiled_to_machine_code_agree_with_eager_ones(name):
    assert run("inductor", name) == f"agreed on {name}\n"
