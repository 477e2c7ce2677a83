"""The command line: its commands, and how each of their ends is reported."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final, cast

import typer
import typer.core

from comine.value_names import name_values
from coordinator.cli.terminal.outlet import outlet
from link.errors import ComineError, ConfigurationError, InternalError, JobCancelled, ResourceError, UsageError
from link.files.printable import enumeration, one_line

_COMMANDS: Final = {
    "init": "party.init",
    "quickstart": "comine.quickstart.command",
    "demo": "coordinator.cli.demo",
    "doctor": "coordinator.cli.doctor",
    "simulate": "coordinator.cli.jobs.simulate",
    "compare": "coordinator.cli.jobs.compare",
    "query": "coordinator.cli.services.query",
    "explain": "coordinator.cli.explain",
    "docs": "coordinator.cli.docs",
    "schema": "coordinator.cli.schema",
    "support-bundle": "comine.support_bundle",
    "pki": "coordinator.cli.pki",
    "federation": "coordinator.cli.federation",
    "job": "coordinator.cli.jobs.job",
    "console": "coordinator.cli.console",
    "audit": "coordinator.cli.audit",
    "frequency": "coordinator.cli.services.frequency",
    "shuffle": "coordinator.cli.services.shuffle",
    "anonymize": "coordinator.cli.anonymize",
    "party": "party.cli",
    "relay": "relay.cli",
}
"""By name, in the order of the help: the module with its group `app`, or with a function of its name, with _ for -."""

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


class _Commands(typer.core.TyperGroup):
    """Loads a command's module when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """All names, in the order of the help."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """The command; None where there is none, and then all are loaded, since names like it will be suggested."""
        for name in (cmd_name,) if cmd_name in _COMMANDS else _COMMANDS:
            if name not in self.commands:
                self.commands[name] = _command(name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Names the groups that have a command of the name, where there is none of its own."""
        if args[0] not in _COMMANDS and self.get_command(ctx, args[0]) is None:
            groups = [group for group in _COMMANDS if args[0] in getattr(self.commands[group], "commands", {})]
            if groups:
                meant = enumeration([f"comine {group} {args[0]}" for group in groups], "or")
                ctx.fail(f"there is no command '{args[0]}' of its own; {meant} may be meant")
        return super().resolve_command(ctx, args)


def _command(name: str) -> Any:
    app, module = _typer(), import_module(_COMMANDS[name])
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name.replace("-", "_")))
    found = typer.main.get_group(app).commands[name]
    name_values(found)
    return found


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, **settings)  # the same in every terminal


def application() -> Any:
    """The command with its sub-commands."""
    app = _typer(
        name="comine",
        cls=_Commands,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_comine)
    return typer.main.get_command(app)


def main() -> None:
    """Runs the command line; every end has its exit code, and no user sees a traceback."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # every fault is reported in comine's own words, and once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more are not used, and each spins for 50 ms when it starts
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # there are none, and looking for them takes 50 ms
    nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # for streams that the caller has closed
    sys.stdout, sys.stderr = outlet(sys.stdout or nowhere), outlet(sys.stderr or nowhere)
    _speak_utf_8()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if stream is sys.stdout:
                code = _failed(_full(error))
            os.dup2(nowhere.fileno(), stream.fileno())
    # A thread cannot be cancelled, so after Ctrl-C the interpreter would wait for work that nobody wants any more.
    # It would also take 60 ms of every command to put its modules away, which ends with the process anyway.
    os._exit(code)


def _speak_utf_8() -> None:
    """Makes standard output carry any item: UTF-8 in files and pipes, and no fault where a terminal lacks a letter."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="replace")
        else:
            sys.stdout.reconfigure(encoding="utf-8", errors="strict")


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code; what went wrong is reported on standard error.

    Args:
        arguments: The command line, without the name of the program.
    """
    try:
        code = application()(list(arguments), prog_name="comine", standalone_mode=False)
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
    except UsageError as error:
        return _failed(error, _called(arguments))
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


def _ended(code: int, arguments: Sequence[str]) -> int:
    """The exit code of a command that ended with `code` and without an error."""
    if code == _COMPLETION_EXIT and _COMPLETION & set(arguments):
        return _failed(
            UsageError(
                "the calling shell is not known, or is none of bash, zsh and fish; this prints the script for "
                "bash: _COMINE_COMPLETE=source_bash comine"
            )
        )
    return _failed(JobCancelled("interrupted")) if code == _SIGINT_EXIT else code


def _full(error: OSError) -> ResourceError:
    return ResourceError(f"the output cannot be written ({error.strerror}); free space or write elsewhere")


def _called(arguments: Sequence[str]) -> str:
    """The command that a command line calls, such as `comine job run`."""
    path, command = "comine", application()
    for word in arguments:
        look_up = getattr(command, "get_command", None)  # of a group; a command has no others in it
        if look_up is None or (command := look_up(None, word)) is None:
            break
        path += f" {word}"
    return path


def _failed(error: ComineError, path: str = "comine") -> int:
    if os.environ.get("COMINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    if isinstance(error, UsageError):
        _say(f"{error.message} ({error.code}; {path} --help)")
    else:
        _say(f"{error.message.removesuffix('.')} ({error.code}; comine explain {error.code})")
    return error.exit_code


def _misused(error: Any) -> int:
    """Says what click does not understand, after how the command is used."""
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
    with contextlib.suppress(OSError):  # nobody listens; the exit code still says it
        sys.stderr.write(f"comine: {one_line(sentence)}\n")
