"""Ctrl-C at any moment is a sentence with its code: while modules are loaded, in a command, and after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.turn(2)

INTERRUPTED = (50, "", "comine: interrupted (E500; comine explain E500)\n")

# What the script does that pip makes, with a Ctrl-C when a module is looked for; without one it lists them.
AT_MODULE = """
import os, signal, sys
wanted, found = sys.argv.pop(1), []
class Finder:
    def find_spec(self, name, path, target=None):
        found.append(name)
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
if wanted == "none":
    leave = os._exit
    os._exit = lambda code: (sys.__stderr__.write(" ".join(found)), sys.__stderr__.flush(), leave(code))
sys.meta_path.insert(0, Finder())
from comine.__main__ import main
sys.exit(main())
"""
AT_CALL = """
import os, signal, sys, importlib
where, name = sys.argv.pop(1).rsplit(".", 1)
place = importlib.import_module(where)
real = getattr(place, name)
def interrupted(*arguments, **more):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*arguments, **more)
setattr(place, name, interrupted)
from comine.__main__ import main
sys.exit(main())
"""


def ran(script: str, where: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", script, where, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_while_modules_are_loaded(subtests: pytest.Subtests, tmp_path: Path) -> None:
    command = ("job", "list", "--federation", str(tmp_path / "none.toml"))
    code, _, told = ran(AT_MODULE, "none", *command)
    assert code == 10
    modules = told.split(")\n")[-1].split()
    assert len(modules) > 100
    first = modules.index("comine.command")
    for module in dict.fromkeys(["comine.command", *modules[first :: (len(modules) - first) // 8], modules[-1]]):
        with subtests.test(module=module):
            assert ran(AT_MODULE, module, *command) == INTERRUPTED


@pytest.mark.parametrize(
    "where", ["coordinator.cli.terminal.outlet.outlet", "comine.command.application", "comine.command._ended"]
)
def test_before_a_command_and_after_it(where: str) -> None:
    code, _, told = ran(AT_CALL, where, "explain", "E500")
    assert (code, told) == (INTERRUPTED[0], INTERRUPTED[2])


def test_whoever_ignores_it_goes_on_ignoring_it() -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + AT_CALL
    assert ran(script, "comine.command._ended", "explain", "E500")[0] == 0
