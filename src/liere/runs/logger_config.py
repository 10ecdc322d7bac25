"""The logger section of a configuration."""

from __future__ import annotations

from typing import Any

from liere.config_fields import Section

__all__ = ["LoggerConfig"]


class LoggerConfig(Section):
    """A Lightning logger, with the field names of Lightning's configuration files; `metrics.csv` is always written."""

    class_path: str | None = None
    """Lightning logger, for example lightning.pytorch.loggers.WandbLogger; null: TensorBoard in the run's folder"""
    init_args: dict[str, Any] = {}  # noqa: RUF012  (pydantic copies it)
    """arguments of that class, for example {project: my-project}; save_dir defaults to the run's folder"""
