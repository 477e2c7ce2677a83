"""Shell completion: by the protocol of environment variables that each shell's script speaks, and by bash itself."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import shellingham

from comine.command import run
from coordinator.jobs.records.store import Store
from coordinator.jobs.runner import draft
from coordinator.member import read_federation
from jobs.loading import load_job
from link.errors import BY_CODE
from link.pki.authority import Authority
from tests.cli.conftest import Comine, write_job

SHELLS = ["bash", "zsh", "fish"]
FORMATS = ["basket", "csv", "long", "wide", "parquet", "sql"]  # of data that a simulation reads


def ask(shell: str, line: str, cwd: Path) -> list[str]:
    """What a shell is told to offer for the last word of a line, by a process that has loaded already."""
    asked = {
        "_COMINE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        for name, value in asked.items():
            patch.setenv(name, value)
        assert run([]) == 0
    assert err.getvalue() == ""
    return out.getvalue().splitlines()


def test_commands_and_options_are_completed(tmp_path: Path) -> None:
    assert ask("bash", "comine jo", tmp_path) == ["job"]
    assert ask("bash", "comine job ru", tmp_path) == ["run"]
    assert {"check", "serve"} <= set(ask("bash", "comine party ", tmp_path))
    assert "--federation" in ask("bash", "comine doctor --f", tmp_path)


def test_zsh_and_fish_are_told_the_same(tmp_path: Path) -> None:
    assert '"job"' in "".join(ask("zsh", "comine jo", tmp_path))
    assert [line.partition("\t")[0] for line in ask("fish", "comine jo", tmp_path)] == ["job"]


def test_error_codes_are_completed(tmp_path: Path) -> None:
    assert ask("bash", "comine explain E10", tmp_path) == [code for code in sorted(BY_CODE) if code.startswith("E10")]


def test_schemas_are_completed(tmp_path: Path) -> None:
    assert "result" in ask("bash", "comine schema re", tmp_path)


def test_the_parties_of_a_job_are_completed(tmp_path: Path) -> None:
    write_job(tmp_path)
    assert ask("bash", "comine simulate job.toml --party ", tmp_path) == ["north=", "south=", "east="]
    assert ask("bash", "comine simulate job.toml --party north=a --party ", tmp_path) == ["south=", "east="]
    assert ask("bash", "comine simulate --seed 1 job.toml --party so", tmp_path) == ["south="]
    for job in ("no.toml", "broken.toml"):
        (tmp_path / "broken.toml").write_text("job = 1\n")
        assert ask("bash", f"comine simulate {job} --party ", tmp_path) == [""]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_are_shown_and_installed(
    comine: Comine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shellingham, "detect_shell", lambda: (shell, f"/bin/{shell}"))
    shown = comine("--show-completion")
    assert shown.code == 0
    assert "_COMINE_COMPLETE" in shown.out
    assert f"complete_{shell}" in shown.out
    assert comine("--install-completion").code == 0
    texts = [path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert any(shown.out.strip() in text for text in texts)


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
@pytest.mark.parametrize("shell", ["tcsh", None])
def test_another_shell_is_told_what_to_do(
    comine: Comine, monkeypatch: pytest.MonkeyPatch, option: str, shell: str | None
) -> None:
    def detect() -> tuple[str, str]:
        if shell is None:
            raise shellingham.ShellDetectionFailure
        return shell, shell

    monkeypatch.setattr(shellingham, "detect_shell", detect)
    ran = comine(option)
    assert ran.code == 2
    assert "_COMINE_COMPLETE=source_bash comine" in ran.err


def test_the_script_works_in_bash(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    (tmp_path / "comine").write_text(f'#!/bin/sh\nexec {sys.executable} -m comine "$@"\n')
    (tmp_path / "comine").chmod(0o755)
    steps = """
        source <(_COMINE_COMPLETE=source_bash comine)
        COMP_WORDS=(comine simul) COMP_CWORD=1
        _comine_completion comine
        echo "${COMPREPLY[@]}"
        complete -p comine
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [bash, "--norc", "-c", steps], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["simulate", "complete -o default -F _comine_completion comine"]


def test_completion_loads_nothing_heavy() -> None:
    environment = {**os.environ, "_COMINE_COMPLETE": "complete_bash", "COMP_WORDS": "comine jo", "COMP_CWORD": "1"}
    command = [sys.executable, "-X", "importtime", "-m", "comine"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["job"]
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not {"numpy", "pyarrow", "grpc", "duckdb", "cryptography"} & loaded  # Typer itself brings pydantic


def test_the_words_of_an_option_are_completed(tmp_path: Path) -> None:
    assert ask("bash", "comine pki issue a --role co", tmp_path) == ["coordinator"]
    assert ask("bash", "comine simulate job.toml --format ", tmp_path) == FORMATS
    assert ask("bash", "comine job new --task naive", tmp_path) == ["naive-bayes"]
    assert ask("bash", "comine job new --model lo", tmp_path) == ["local"]


def test_the_jobs_of_the_coordinator_are_completed(tmp_path: Path) -> None:
    assert ask("bash", "comine job status ", tmp_path) == [""]  # there is no federation
    write_job(tmp_path)
    file = tmp_path / "federation.toml"
    coordinator = '[coordinator]\nca = "ca.crt"\ncertificate = "a.crt"\nkey = "a.key"\n'
    file.write_text(f'[federation]\nname = "f"\n{coordinator}[[party]]\nname = "north"\naddress = "h:1"\n')
    store = Store.of(read_federation(file))
    record = draft(load_job(tmp_path / "job.toml"), Authority.create().issue("analyst", role="coordinator"), 600)
    store.create(record).unlock()
    assert ask("bash", "comine job status wee", tmp_path) == ["weekly-baskets"]
    assert ask("bash", f"comine job watch {record.id.hex()[:4]}", tmp_path) == [record.id.hex()[:12]]
