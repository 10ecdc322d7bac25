"""`liere bench`: how fast it is, and how much memory it needs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from liere.commands.arguments import positive_number
from liere.errors import InputError, suggest
from liere.terminal.messages import say
from liere.terminal.progress import ProgressLine
from liere.terminal.text_table import text_table

__all__ = ["HELP", "add_arguments", "run"]

HELP = "measure time and memory: of the exponential, of a train step, and how both grow"
QUESTIONS = {
    "rotations": "what does the exponential cost, beside torch.matrix_exp and bare matrix products?",
    "step": "what does each position encoding cost a train step and inference of ViT-S?",
    "memory": "how much memory does a train step need?",
    "scaling": "how does the cost grow with tokens, block size, axes and batch size?",
    "loading": "is it the data that training waits for?",
    "points": "what do positions of each sample cost, in time and memory? A train step over point clouds",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = [f"  {name:11}{text}" for name, text in {**QUESTIONS, "all": "all of these, one after the other"}.items()]
    parser.epilog = "\n".join(["questions:", *lines])
    parser.add_argument("question", metavar="QUESTION", help="one of the questions below, or all")
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few rounds: a minute for all, not to be quoted"
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("bench-results"),
        metavar="DIR",
        help="folder for bench_<question>.json and .png, replaced if they exist (default: ./bench-results)",
    )
    parser.add_argument(
        "--rounds",
        type=positive_number,
        metavar="N",
        help="how often each contestant is measured (default: by question)",
    )
    parser.add_argument(
        "--threads", type=positive_number, metavar="N", help="threads of torch (default: torch's choice)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables, by question")


def run(args: argparse.Namespace) -> None:
    """Measure, and write and print what was found as soon as it is known."""
    if args.question not in (*QUESTIONS, "all"):
        raise InputError(f"unknown question {args.question!r}: {suggest(args.question, [*QUESTIONS, 'all'])}")
    from liere.bench.record import system_load
    from liere.files.writing import prepare_folder
    from liere.report.drawing import require_matplotlib

    require_matplotlib()
    prepare_folder(args.output, "--output")
    load, records = system_load(), {}
    with _threads(args.threads):
        for question in QUESTIONS if args.question == "all" else [args.question]:
            records[question] = _answer(question, args, load)
    if args.json:
        say(json.dumps(records, indent=1))


def _answer(question: str, args: argparse.Namespace, load: float | None) -> dict[str, Any]:
    from liere.bench import loading, memory, points, rotations, scaling, step
    from liere.bench.figures import draw_record
    from liere.bench.record import Settings, make_record, write_record

    modules = {
        "rotations": rotations,
        "step": step,
        "memory": memory,
        "scaling": scaling,
        "loading": loading,
        "points": points,
    }
    settings = Settings(quick=args.quick, rounds=args.rounds, watch=_watcher())
    record = make_record(question, modules[question].measure(settings), quick=args.quick, load=load)
    path = write_record(record, args.output)
    draw_record(record, path.with_suffix(".png"))
    if not args.json:
        _print(record)
        say(f"wrote {path} and {path.with_suffix('.png').name}")
        say()
    return record


def _watcher() -> Callable[[str, int, int], None]:
    line = ProgressLine()

    def watch(name: str, done: int, total: int) -> None:
        if done < total:
            line.show(f"{name}: {done} of {total}", now=done == 0)
        else:
            line.clear()

    return watch


def _print(record: dict[str, Any]) -> None:
    from liere.bench.tables import make_tables

    quick = " (quick: not to be quoted)" if record["quick"] else ""
    for content in make_tables(record):
        say(content.title + quick)
        for line in text_table(content.header, content.rows):
            say(line)
        for line in content.legend:
            say(line)
        say()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Have torch use this many threads for a while."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
