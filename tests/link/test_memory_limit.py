from __future__ import annotations

from pathlib import Path

from link.runtime.memory_limit import memory_limit


def test_the_machine_has_a_limit() -> None:
    assert memory_limit() > 1 << 20


def test_control_groups_of_version_2_count_with_all_around_them(tmp_path: Path) -> None:
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    (groups / "party/node").mkdir(parents=True)
    own.write_text("0::/party/node\n")
    (groups / "party/node/memory.max").write_text("max\n")
    unlimited = memory_limit(groups, own)
    (groups / "party/memory.max").write_text("1048576\n")
    assert memory_limit(groups, own) == 1 << 20 < unlimited
    (groups / "party/node/memory.max").write_text("65536\n")
    assert memory_limit(groups, own) == 1 << 16


def test_control_groups_of_version_1(tmp_path: Path) -> None:
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    (groups / "memory/node").mkdir(parents=True)
    own.write_text("5:cpu,cpuacct:/other\n4:memory:/node\n0::/\n")
    (groups / "memory/node/memory.limit_in_bytes").write_text("65536\n")
    assert memory_limit(groups, own) == 1 << 16


def test_no_control_groups(tmp_path: Path) -> None:
    assert memory_limit(tmp_path, tmp_path / "absent") == memory_limit(tmp_path, tmp_path / "absent")
