"""The shells that people paste the README's commands into. zsh, where it is not installed, is unpacked from Debian's
package into a cache folder."""

import fcntl
import shutil
import subprocess
from pathlib import Path

SECONDS = 300


def bash(_: Path) -> list[str]:
    """Return the beginning of a command line that runs a script."""
    return [find("bash"), "--norc", "--noprofile"]


def zsh(cache: Path) -> list[str]:
    """Return the beginning of a command line that runs a script. Comments are no comments, as in a terminal."""
    path = shutil.which("zsh") or str(unpacked(cache))
    return [path, "-f", "-o", "no_interactive_comments"]


SHELLS = {"bash": bash, "zsh": zsh}


def find(name: str) -> str:
    """Return where a program is."""
    path = shutil.which(name)
    assert path, f"the README is for {name} too, and it is not installed"
    return path


def unpacked(cache: Path) -> Path:
    """Return the zsh of a package that is unpacked into the folder, and not installed."""
    program = cache / "root" / "bin" / "zsh"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            assert shutil.which("apt-get"), "zsh is not installed, and without apt-get it cannot be had: install zsh"
            if _run(cache, "apt-get", "download", "zsh") != 0:
                _run(cache, "apt-get", "update")
                assert _run(cache, "apt-get", "download", "zsh") == 0, "zsh cannot be downloaded: install it"
            (package,) = cache.glob("zsh_*.deb")
            assert _run(cache, "dpkg", "-x", package.name, "root") == 0
            package.unlink()
    return program


def _run(folder: Path, *line: str) -> int:
    done = subprocess.run(
        line,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode
