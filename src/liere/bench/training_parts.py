"""The parts of a training run, timed by a Lightning profiler."""

from __future__ import annotations

import time
from collections.abc import Callable

from liere.optional.lightning_import import import_lightning

pl = import_lightning()

from lightning.pytorch.profilers import Profiler  # noqa: E402  (`import_lightning` reports it if it is missing)

__all__ = ["PARTS", "WORK", "RunParts"]

WORK = ("forward", "backward", "optimizer step")
PARTS = (*WORK, "loader", "logging", "loop", "start and end", "checkpoints", "validation")
"""The loader also covers its creation; the loop is Lightning's own, with seeding dropout; logging covers progress."""

# The part that an action belongs to, by the last word of its name; other actions belong to the part around them.
_BY_HOOK = {
    "training_step": "forward",
    "backward": "backward",
    "optimizer_step": "optimizer step",
    "optimizer_zero_grad": "optimizer step",
    "configure_gradient_clipping": "optimizer step",
    "lr_scheduler_step": "optimizer step",
    "train_dataloader_next": "loader",
    "train_dataloader": "loader",
    "val_dataloader": "validation",
}
_ONCE = ("setup", "on_fit_start", "on_train_start", "on_train_end", "on_fit_end", "teardown")
_BY_CALLBACK = {"Journal": "logging", "Progress": "logging", "Saver": "checkpoints"}


class RunParts(Profiler):
    """Add up the time of a run by part; every moment belongs to one part.

    Lightning announces the start and end of every hook. The clock starts with the object; `finish` stops it.

    Args:
        clock: Function that returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__()
        self.clock = clock
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.outside = "start and end"  # of all actions
        self.validates = False
        self.nested: list[str] = []
        self.last = clock()

    def start(self, action_name: str) -> None:
        """Begin an action."""
        self._add()
        hook = action_name.rpartition(".")[2]
        if action_name == "run_training_epoch":
            self.outside = "loop"
        elif hook == "on_train_end":
            self.outside = "start and end"
        elif hook == "on_validation_model_zero_grad":
            self.validates = True
        self.nested.append(self._part(action_name, hook))

    def stop(self, action_name: str) -> None:
        """End the action that began last."""
        self._add()
        self.nested.pop()
        if action_name.endswith(".on_validation_model_train"):
            self.validates = False

    def finish(self) -> dict[str, float]:
        """Stop the clock and return the seconds of each part."""
        self._add()
        return self.seconds

    def _part(self, action: str, hook: str) -> str:
        if hook in _ONCE:  # for example the creation of log files
            return "start and end"
        if action.startswith("[Callback]"):
            return _BY_CALLBACK.get(action.removeprefix("[Callback]").partition(".")[0], "loop")
        if action == "run_training_epoch":
            return "loop"
        return _BY_HOOK.get(hook) or (self.nested[-1] if self.nested else self.outside)

    def _add(self) -> None:
        now = self.clock()
        part = self.nested[-1] if self.nested else self.outside
        if self.validates and part in ("loop", "start and end"):
            part = "validation"
        self.seconds[part] += now - self.last
        self.last = now
