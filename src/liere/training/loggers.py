"""The logger of a run: TensorBoard, or any logger of Lightning that a configuration or a caller names."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from liere.errors import InputError
from liere.files.reading import reason, shorten
from liere.optional.lightning_import import import_lightning
from liere.runs.logger_config import LoggerConfig

pl = import_lightning()

__all__ = ["make_logger", "open_logger"]

EXAMPLE = "lightning.pytorch.loggers.CSVLogger"


def make_logger(config: LoggerConfig, folder: Path) -> Any | None:
    """Return the logger that a configuration names; None if it names none.

    Args:
        config: Its class and arguments.
        folder: Of the run: `save_dir`, where the class has it and the configuration does not say.

    Raises:
        ValueError: If there is no such class, it is no logger of Lightning, or it does not take these arguments.
    """
    if config.class_path is None:
        if config.init_args:
            raise InputError(
                f"logger.init_args {shorten(str(config.init_args))} lack logger.class_path: give one, like {EXAMPLE}"
            )
        return None
    kind = _find_class(config.class_path)
    arguments = dict(config.init_args)
    if "save_dir" in inspect.signature(kind).parameters:
        arguments.setdefault("save_dir", str(folder))
    try:
        return kind(**arguments)
    except Exception as error:  # loggers raise what they like
        raise InputError(f"logger {config.class_path} cannot be made: {_told(error)}") from error


def open_logger(logger: Any, settings: dict[str, Any]) -> None:
    """Have a logger begin and note the configuration of the run, so that what is wrong with it is told at once.

    Raises:
        ValueError: If it cannot, because it is not logged in to a service, say.
    """
    is_logger = isinstance(logger, _logger_classes())
    if not is_logger:
        raise InputError(
            f"logger must be a logger of Lightning, got {shorten(repr(logger))}: use one like {EXAMPLE}(save_dir)"
        )
    try:
        _ = logger.experiment
        logger.log_hyperparams(settings)
    except Exception as error:
        raise InputError(f"logger {type(logger).__name__} cannot begin: {_told(error)}") from error


def _find_class(path: str) -> type:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"logger.class_path {shorten(path)!r} cannot be imported ({reason(error)}): install it, or name another "
            f"class, like {EXAMPLE}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, _logger_classes())):
        raise InputError(f"logger.class_path {shorten(path)!r} is no logger of Lightning: name one like {EXAMPLE}")
    return found


def _logger_classes() -> tuple[Any, ...]:
    """Return the base class, of both packages that Lightning is published as, where they are there."""
    from lightning.pytorch.loggers.logger import Logger

    try:
        from pytorch_lightning.loggers.logger import Logger as OldLogger
    except ImportError:
        return (Logger,)
    return (Logger, OldLogger)


def _told(error: Exception) -> str:
    return f"{reason(error)} ({type(error).__name__}); see logger.init_args in docs/training.md"
