"""The command line: its arguments. What the commands do is in :mod:`hyrespinn.commands`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

from .errors import EXIT_LIMIT, EXIT_SIGNAL, EXIT_USER, StoppedEarly, UserError
from .phases import IMPORTS, Phases, line, silent
from .training.waiting import leave
from .version import __version__

# For texts of help alone, which must not wait for JAX; a test compares them with the registries.
METHODS = ("auto", "network", "collocation", "paper")
COMPARED = ("hyrespinn", "pinn", "respinn", "expertpinn", "stackedpinn", "piratenet")


FIRST_PHASES = {"solve": "reading the statement", "resume": "reading the run"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: without ``arguments`` that of the process, which it ends, else these."""
    options = build_parser().parse_args(arguments)
    if arguments is None:
        signal.signal(signal.SIGTERM, _terminate)
        leave(_run(options))
    return _run(options)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Before a run has begun there is nothing to save."""
    raise SystemExit(EXIT_SIGNAL + number)


def _run(options: argparse.Namespace) -> int:
    shown = options.command in FIRST_PHASES and not options.quiet
    options.phases = Phases(line if shown else silent)
    try:
        options.phases.begin(FIRST_PHASES.get(options.command, ""))
        with IMPORTS.measured():
            commands = import_module(".commands", __package__)
        options.phases.count_as("configure")
        return commands.COMMANDS[options.command](options)
    except StoppedEarly as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_LIMIT if error.signal is None else EXIT_SIGNAL + error.signal
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER
    except KeyboardInterrupt:
        return EXIT_SIGNAL + 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hyrespinn",
        description="Solve partial differential equations with hybrid residual networks.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    show = commands.add_parser("list", help="the problems, or the settings of one")
    show.add_argument("--keys", metavar="PROBLEM", help="print every key that --set takes")
    _add_choice(show)
    show.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    show.set_defaults(command="list")

    run = commands.add_parser("solve", help="solve a problem")
    run.add_argument("problem", help="a name from `hyrespinn list`, or FILE.py:CLASS")
    _add_choice(run)
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--precision", default="float64", help="float64 (default) or float32")
    run.add_argument(
        "--max-seconds", type=float,
        help="a limit on the seconds of training; exit code 5 where it is reached",
    )  # fmt: skip
    run.add_argument(
        "--tolerance", type=float, default=1e-3,
        help="the relative error up to which a run is called solved (default 1e-3)",
    )  # fmt: skip
    run.add_argument("--out", type=Path, help="the run directory to create")
    run.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    run.add_argument("--no-reference", action="store_true", help="do not measure the error")
    run.add_argument("--quiet", action="store_true", help="three lines at the end alone")
    run.add_argument(
        "--checkpoint-seconds", type=float, default=30.0, metavar="N",
        help="seconds between two checkpoints (default 30)",
    )  # fmt: skip
    run.set_defaults(command="solve")

    again = commands.add_parser("resume", help="go on with a run that was stopped")
    again.add_argument("directory", type=Path)
    again.add_argument(
        "--max-seconds", type=float,
        help="a limit from now on (default: another allotment of the run's own limit)",
    )  # fmt: skip
    again.add_argument("--quiet", action="store_true", help="three lines at the end alone")
    _add_load(again)
    again.set_defaults(command="resume")

    predict = commands.add_parser("predict", help="evaluate a solution at the points of a file")
    predict.add_argument("directory", type=Path, help="a run directory or a .hyres file")
    predict.add_argument(
        "--points", type=Path, required=True, help="a CSV file with a column for each coordinate"
    )
    predict.add_argument("--out", type=Path, required=True)
    _add_load(predict)
    predict.set_defaults(command="predict")

    reference = commands.add_parser("reference", help="write or draw a problem's reference")
    reference.add_argument("problem")
    reference.add_argument("--out", type=Path, help="the .npz file to write")
    reference.add_argument(
        "--plot", type=Path, nargs="?", const=Path(), metavar="FILE",
        help="draw it, into PROBLEM-reference.png or this file",
    )  # fmt: skip
    reference.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE")
    reference.set_defaults(command="reference")

    compare = commands.add_parser("bench", help="compare the models on the problems of the paper")
    compare.add_argument("--problems", nargs="+", help="default: the paper's ten")
    compare.add_argument(
        "--models", nargs="+", help=f"for network and paper: {', '.join(COMPARED)} (default: all)"
    )
    _add_choice(compare, model=False)
    compare.set_defaults(method="network", preset="smoke")
    compare.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0 to N − 1")
    compare.add_argument("--precision", default="float64", help="float64 (default) or float32")
    compare.add_argument("--max-seconds", type=float, help="a limit on the training of a cell")
    compare.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE",
        help="applied to the problems and models that have the key",
    )  # fmt: skip
    compare.add_argument("--out", type=Path, help="the directory to create or to go on with")
    compare.add_argument(
        "--jobs", type=int, help="cells at once, each on one core (default: up to 4; 1 with a GPU)"
    )
    compare.add_argument("--verbose", action="store_true", help="the progress of every run too")
    compare.add_argument("--show", type=Path, metavar="DIR", help="print its tables; run nothing")
    compare.set_defaults(command="bench")
    return parser


def _add_choice(parser: argparse.ArgumentParser, model: bool = True) -> None:
    names = ", ".join(METHODS)
    parser.add_argument("--method", default="auto", help=f"{names}, or one from --load")
    parser.add_argument(
        "--preset", default="fast",
        help="the effort: smoke, fast, accurate; with --method paper also small and full",
    )  # fmt: skip
    if model:
        parser.add_argument("--model", help=f"for network and paper: {', '.join(COMPARED)}")
    _add_load(parser)


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--load", type=Path, nargs="+", action="extend", default=[], metavar="FILE.py",
        help="run files that register kernels, models, optimisers, methods, … of your own",
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
