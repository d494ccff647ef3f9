"""Locks: every package by its hash, the installer too, and from no named registry."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted(path for folder in (ROOT, ROOT / "tests" / "clients") for path in folder.glob("*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_package_of_a_lock_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    packages = re.split(r"\n(?=[a-z])", text.strip())
    assert packages
    for package in packages:
        assert re.match(r"[a-z0-9._\[\],-]+==[^\s;]+", package, re.IGNORECASE), package.splitlines()[0]
        assert "--hash=sha256:" in package, package.splitlines()[0]
    assert "://" not in text


def test_the_installer_is_installed_by_its_hash() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (installed,) = re.findall(r"-m pip install .*", makefile)
    assert "--require-hashes -r requirements-uv.lock" in installed
    assert (ROOT / "requirements-uv.lock").read_text(encoding="utf-8").startswith("uv==")
