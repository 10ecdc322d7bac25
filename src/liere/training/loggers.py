"""The logger of a run: TensorBoard, or any Lightning logger set in the configuration or by the caller."""

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
    """Return the logger of a configuration; None if it has none.

    Args:
        config: Class and arguments of the logger.
        folder: Folder of the run, the default for an argument `save_dir`.

    Raises:
        ValueError: If the class does not exist, is not a Lightning logger, or does not accept these arguments.
    """
    if config.class_path is None:
        if config.init_args:
            raise InputError(
                f"logger.init_args {shorten(str(config.init_args))} needs logger.class_path: set it, e.g. {EXAMPLE}"
            )
        return None
    kind = _find_class(config.class_path)
    arguments = dict(config.init_args)
    if "save_dir" in inspect.signature(kind).parameters:
        arguments.setdefault("save_dir", str(folder))
    try:
        return kind(**arguments)
    except Exception as error:  # loggers may raise anything
        raise InputError(f"logger {config.class_path} cannot be created: {_told(error)}") from error


def open_logger(logger: Any, settings: dict[str, Any]) -> None:
    """Start a logger and log the configuration of the run, so that problems are reported at once.

    Raises:
        ValueError: If it fails, for example because it is not logged in to a service.
    """
    is_logger = isinstance(logger, _logger_classes())
    if not is_logger:
        raise InputError(
            f"logger must be a Lightning logger, got {shorten(repr(logger))}: use for example {EXAMPLE}(save_dir)"
        )
    try:
        _ = logger.experiment
        logger.log_hyperparams(settings)
    except Exception as error:
        raise InputError(f"logger {type(logger).__name__} cannot start: {_told(error)}") from error


def _find_class(path: str) -> type:
    module, _, name = path.rpartition(".")
    is_path = module and all(part.isidentifier() for part in path.split("."))
    try:
        found = getattr(importlib.import_module(module), name) if is_path else None
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"logger.class_path {shorten(path)!r} cannot be imported ({reason(error)}): install it, or use another "
            f"class, for example {EXAMPLE}"
        ) from None
    if not (isinstance(found, type) and issubclass(found, _logger_classes())):
        raise InputError(f"logger.class_path {shorten(path)!r} is not a Lightning logger: use for example {EXAMPLE}")
    return found


def _logger_classes() -> tuple[Any, ...]:
    """Return the base classes of loggers in the installed packages of Lightning, new and old."""
    from lightning.pytorch.loggers.logger import Logger

    try:
        from pytorch_lightning.loggers.logger import Logger as OldLogger
    except ImportError:
        return (Logger,)
    return (Logger, OldLogger)


def _told(error: Exception) -> str:
    return f"{reason(error)} ({type(error).__name__}); see logger.init_args in docs/how-to/train.md"
