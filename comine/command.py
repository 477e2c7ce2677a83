"""The command line: its commands, and how each of their ends is told."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, cast

import typer

from coordinator.cli.app import COMMANDS, add_command
from coordinator.cli.outlet import outlet
from coordinator.loading import loading
from link.errors import ComineError, ConfigurationError, InternalError, JobCancelled, ResourceError, UsageError
from link.printable import one_line

_COMMANDS: Final = ("init", *COMMANDS, "party")
_SIGINT_EXIT = 130
_COMPLETION_EXIT = 1  # Typer's, of a shell that it does not know; no command of comine ends with it
_WrongUsage = cast(
    type[Exception], typer.BadParameter.__base__
)  # click's UsageError, which Typer gives no name of its own
_COMPLETION = frozenset(("--install-completion", "--show-completion"))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"comine {version('comine')}")
        raise typer.Exit


def _comine(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compute together what none may hand over: frequent itemsets and rules over the data of several parties."""


def application(called: str | None = None) -> typer.Typer:
    """The command with its sub-commands.

    Args:
        called: The only sub-command that is needed, where it is one; to build the others takes longer than many a run.
    """
    app = typer.Typer(
        name="comine",
        no_args_is_help=True,
        rich_markup_mode=None,  # plain help: quick to show, the same in every terminal
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_comine)
    for name in _COMMANDS if called not in _COMMANDS else (called,):
        _add_command(app, name)
    return app


def _add_command(app: typer.Typer, name: str) -> None:
    match name:
        case "init":
            from party.init import init

            app.command()(init)
        case "party":
            from party.cli import app as party_app

            app.add_typer(party_app, name=name)
        case _:
            add_command(app, name)


class _WithoutPandas:
    """Hides pandas: pyarrow loads it where it is installed, which takes longer than most commands and serves none."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002
        """Refuses pandas and leaves all other modules to the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError("no command needs pandas", name=fullname)


def main() -> None:
    """Runs the command line; every end has its exit code, and no user sees a traceback."""
    sys.meta_path.insert(0, _WithoutPandas())
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # every fault is told in comine's own words, and once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more are not used, and each spins for 50 ms when it starts
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # there are none, and looking for them takes 50 ms
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for streams that the caller has closed
    sys.stdout, sys.stderr = outlet(sys.stdout or nowhere), outlet(sys.stderr or nowhere)
    _speak_utf_8()
    code = run(sys.argv[1:], alone=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                code = _failed(_full(error))
            os.dup2(nowhere.fileno(), stream.fileno())
    # A thread cannot be cancelled, so the interpreter would wait for work that nobody wants any more; and taking the
    # libraries down one by one takes longer than many a command.
    os._exit(code)


def _speak_utf_8() -> None:
    """Makes standard output carry any item: UTF-8 in files and pipes, and no fault where a terminal lacks a letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")


def run(arguments: Sequence[str], *, alone: bool = False) -> int:
    """Runs one command and returns its exit code; what went wrong is told on standard error.

    Args:
        arguments: The command line, without the name of the program.
        alone: Whether the process ends with this command.
    """
    try:
        with loading(for_good=alone):
            command = typer.main.get_command(application(*arguments[:1]))
        with _interruptible() if alone else contextlib.nullcontext():
            code = command(list(arguments), prog_name="comine", standalone_mode=False)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # none of ours, whose readers may leave
            return _faulty(end.__context__)
        code = end.code
    except _WrongUsage as error:
        return _misused(error)
    except typer.Abort:  # Ctrl-C or the end of input where a question was asked
        return _failed(JobCancelled("interrupted"))
    except KeyboardInterrupt:
        return _failed(JobCancelled("interrupted"))
    except ComineError as error:
        return _failed(error)
    except MemoryError:
        return _failed(
            ResourceError(
                "this machine has too little memory for that; give it less to do (of itemsets: raise min_support or "
                "set max_length), or a machine with more"
            )
        )
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and any("\ud800" <= each <= "\udfff" for each in "".join(arguments)):
            return _failed(UsageError("an argument holds bytes that are no text in UTF-8, which only paths may"))
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _failed(_full(error))
        if isinstance(error, OSError) and error.filename is not None:  # too long a name, a folder that may not be read
            path = os.fsdecode(error.filename)
            return _failed(ConfigurationError(f"{path} cannot be used: {error.strerror}; check the path"))
        return _faulty(error)
    return _ended(code if isinstance(code, int) else 0, arguments)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Inside, Ctrl-C is an exception, so that a command puts in order what it has begun."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # it is ignored
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ended(code: int, arguments: Sequence[str]) -> int:
    """The exit code of a command that ended with `code` and without an error."""
    if code == _COMPLETION_EXIT and _COMPLETION & set(arguments):
        return _failed(
            UsageError(
                "the shell that calls cannot be told, or is none of bash, zsh and fish; this prints the script for "
                "bash: _COMINE_COMPLETE=source_bash comine"
            )
        )
    return _failed(JobCancelled("interrupted")) if code == _SIGINT_EXIT else code


def _full(error: OSError) -> ResourceError:
    return ResourceError(f"the output cannot be written ({error.strerror}); free space or write elsewhere")


def _failed(error: ComineError) -> int:
    if os.environ.get("COMINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    if isinstance(error, UsageError):
        _say(f"{error.message} ({error.code}; comine --help)")
    else:
        _say(f"{error.message.removesuffix('.')} ({error.code}; comine explain {error.code})")
    return error.exit_code


def _misused(error: Any) -> int:
    """Tells what click does not understand, after how the command is used."""
    context, message = error.ctx, error.format_message()
    if context is not None and message == context.get_help():  # a group without a command: the help says it all
        error.show()
        return UsageError.exit_code
    path = "comine" if context is None else context.command_path
    if context is not None:
        typer.echo(context.get_usage(), err=True)
    _say(f"{message[:1].lower()}{message[1:].removesuffix('.')} ({UsageError.code}; {path} --help)")
    return UsageError.exit_code


def _faulty(error: Exception) -> int:
    if os.environ.get("COMINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    _say(
        f"a fault in comine itself: {type(error).__name__} (E700; comine explain E700); "
        "run with COMINE_DEBUG=1 for the traceback"
    )
    return InternalError.exit_code


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens; the exit code still tells
        sys.stderr.write(f"comine: {one_line(sentence)}\n")
