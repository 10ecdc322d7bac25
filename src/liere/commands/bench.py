"""`liere bench`: measure time and memory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from liere.commands.arguments import positive_number
from liere.errors import InputError, suggest
from liere.terminal.messages import say
from liere.terminal.progress import ProgressLine
from liere.terminal.text_table import text_table

__all__ = ["HELP", "add_arguments", "run"]

HELP = "measure time and memory of the exponential and of train steps, and how they scale"
QUESTIONS = {
    "rotations": "how fast is the exponential, compared with torch.matrix_exp and bare matrix products?",
    "step": "how much time does each position encoding add to a train step and to inference of ViT-S?",
    "memory": "how much memory does a train step need?",
    "scaling": "how does the cost grow with tokens, block size, axes and batch size?",
    "loading": "does training wait for data?",
    "points": "how much time and memory do per-sample positions cost? A train step over point clouds",
    "training": "how much time does training spend on anything but the model?",
    "gpu": "what would a train step take on a GPU? Counted and predicted, not measured; needs no GPU",
}
CPU_ONLY = {
    "memory": "it measures the memory of a process",
    "loading": "it measures the loading of data",
    "training": "it trains with the recipe of the demo, which is one for the CPU",
    "gpu": "it counts, and needs no device",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    lines = [f"  {name:11}{text}" for name, text in {**QUESTIONS, "all": "all of the above"}.items()]
    parser.epilog = "\n".join(["questions:", *lines])
    parser.add_argument("question", metavar="QUESTION", help="one of the questions below, or all")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes and few rounds: about a minute for all questions, but too noisy to be quoted",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("bench-results"),
        metavar="DIR",
        help="folder for bench_<question>.json and .png; existing files are replaced (default: ./bench-results)",
    )
    parser.add_argument(
        "--rounds",
        type=positive_number,
        metavar="N",
        help="number of measurements of each candidate (default: depends on the question)",
    )
    parser.add_argument(
        "--threads", type=positive_number, metavar="N", help="number of torch threads (default: chosen by torch)"
    )
    parser.add_argument(
        "--timm",
        metavar="NAME",
        help="for the question step: compare this timm model with its conversion to LieRE_8 instead",
    )
    parser.add_argument(
        "--device",
        default="cpu",
        metavar="NAME",
        help="device that does the work: cpu, cuda, mps (default: cpu); memory, loading and gpu are for the CPU only",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, by question, instead of tables")


def run(args: argparse.Namespace) -> None:
    """Measure; write and print the answer to each question as soon as it is known."""
    if args.question not in (*QUESTIONS, "all"):
        raise InputError(f"unknown question {args.question!r}: {suggest(args.question, [*QUESTIONS, 'all'])}")
    if args.timm is not None and args.question != "step":
        raise InputError(f"--timm {args.timm} belongs to the question step, got {args.question!r}: liere bench step")
    from liere.bench.devices import check_device
    from liere.bench.record import system_load
    from liere.files.writing import prepare_folder
    from liere.report.drawing import require_matplotlib

    device = check_device(args.device)
    questions = _questions(args.question, device.type)
    require_matplotlib()
    prepare_folder(args.output, "--output")
    load, records = system_load(), {}
    with _threads(args.threads):
        for question in questions:
            record = _answer(question, args, load, device)
            records[record["question"]] = record
    if args.json:
        say(json.dumps(records, indent=1))


def _questions(asked: str, device: str) -> list[str]:
    """Return the questions to answer on a device."""
    if asked != "all":
        if device != "cpu" and asked in CPU_ONLY:
            raise InputError(f"the question {asked} is for the CPU only, since {CPU_ONLY[asked]}: leave out --device")
        return [asked]
    left_out = [question for question in QUESTIONS if device != "cpu" and question in CPU_ONLY]
    for question in left_out:
        say(f"left out: {question}, which is for the CPU only, since {CPU_ONLY[question]}")
    return [question for question in QUESTIONS if question not in left_out]


def _answer(question: str, args: argparse.Namespace, load: float | None, device: Any) -> dict[str, Any]:
    from liere.bench import timm_step
    from liere.bench.figures import draw_record
    from liere.bench.record import Settings, make_record, write_record

    settings = Settings(quick=args.quick, rounds=args.rounds, watch=_watcher(), device=device)
    threads = "" if args.threads is None else f" --threads {args.threads}"
    if args.timm is None:
        name, answer, arguments = question, _module(question).measure(settings), question + threads
    else:
        name, answer = "timm", timm_step.measure(args.timm, settings)
        arguments = f"step --timm {args.timm}{threads}"
    record = make_record(name, answer, quick=args.quick, load=load, arguments=arguments, device=device)
    path = write_record(record, args.output)
    draw_record(record, path.with_suffix(".png"))
    if not args.json:
        _print(record)
        say(f"wrote {path} and {path.with_suffix('.png').name}")
        say()
    return record


def _module(question: str) -> ModuleType:
    if question == "training":  # needs packages for training, which the others do without
        from liere.bench import training

        return training
    from liere.bench import gpu, loading, memory, points, rotations, scaling, step

    return {
        "rotations": rotations,
        "step": step,
        "memory": memory,
        "scaling": scaling,
        "loading": loading,
        "points": points,
        "gpu": gpu,
    }[question]


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

    quick = " (quick run: do not quote)" if record["quick"] else ""
    for content in make_tables(record):
        say(content.title + quick)
        for line in text_table(content.header, content.rows):
            say(line)
        for line in content.legend:
            say(line)
        say()


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Set the number of torch threads temporarily; None leaves it unchanged."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
