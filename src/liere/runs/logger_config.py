"""Which logger receives what training measures."""

from __future__ import annotations

from typing import Any

from liere.config_fields import Section

__all__ = ["LoggerConfig"]


class LoggerConfig(Section):
    """A logger of Lightning, named as Lightning names classes in files; `metrics.csv` is written with any of them."""

    class_path: str | None = None
    """Lightning logger, like lightning.pytorch.loggers.WandbLogger; null: TensorBoard, in the run's folder"""
    init_args: dict[str, Any] = {}  # noqa: RUF012  (pydantic copies it)
    """arguments of that class, like {project: my-project}; save_dir is the run's folder unless given"""
