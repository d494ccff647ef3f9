"""A terminal with an interactive shell, into which text is pasted line by line, as a reader does it."""

import codecs
import os
import re
import select
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from typing import NamedTuple

SECONDS = 240
"""How long a command may take on a busy machine."""
READY, MORE = "@ready@", "@more@"
ENDED = re.compile(rf"{READY}(\d+)@")
PASTING = re.compile(r"\x1b\[\?2004[hl]")
"""Codes that zsh writes around its prompt for pasted text. A program in the background may print right behind one."""
ENTRY = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of the session, so that Ctrl-C reaches what runs in it, and becomes the shell. A suite that
runs as a shell's job in the background ignores Ctrl-C, and so would all that it starts."""
PROMPTS = {
    "bash": f"PS1='{READY}$?@' PS2={MORE}",
    "zsh": f"unsetopt prompt_cr prompt_sp; PROMPT='{READY}%?@' PROMPT2={MORE}",
}
CTRL_C = "\x03"


class Step(NamedTuple):
    """A command as it was pasted, and what became of it."""

    command: str
    code: int
    printed: str


class Terminal:
    """An interactive shell. It shows a prompt with the exit code of each command, and another where one goes on."""

    def __init__(self, shell: list[str], folder: Path, environment: dict[str, str], answers: dict[str, str]) -> None:
        self.answers = answers
        self.text = ""
        self.master, slave = os.openpty()
        modes = termios.tcgetattr(slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        self.process = subprocess.Popen(
            [sys.executable, "-c", ENTRY, *shell, "-i"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self.closed, self.closing = os.pipe()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self._type(PROMPTS[Path(shell[0]).name] + "\n")
        self._await(0)

    def paste(self, text: str) -> list[Step]:
        """Paste commands, and return each with what it printed until the next prompt."""
        steps: list[Step] = []
        command, since = "", len(self.text)
        for line in text.splitlines():
            command += f"{line}\n"
            start = len(self.text)
            self._type(f"{line}\n")
            code = self._await(start)
            if code is not None:
                steps.append(Step(command.strip(), code, self.shown(since)))
                command, since = "", len(self.text)
        assert not command, f"this command does not end: {command}"
        return [step for step in steps if step.command]

    def begin(self, text: str) -> int:
        """Paste commands of which the last goes on; return where its output begins."""
        *first, last = re.split(r"(?<!\\)\n", text.strip())
        for step in self.paste("\n".join(first)):
            assert step.code == 0, step
        start = len(self.text)
        self._type(f"{last}\n")
        return start

    def shown(self, since: int) -> str:
        """Return what was printed since a place in the text, without prompts."""
        return PASTING.sub("", ENDED.sub("", self.text[since:]).replace(MORE, ""))

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code of what ran."""
        start = len(self.text)
        self._type(CTRL_C)
        code = self._await(start)
        assert code is not None
        return code

    def close(self) -> None:
        """Close the window: the kernel hangs up on the shell and what runs in it, and they can read no more."""
        os.close(self.closing)
        self.reader.join(20)
        os.close(self.closed)
        os.close(self.master)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()

    def _type(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self.master, data[:512]) :]

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            if self.closed in select.select([self.master, self.closed], [], [])[0]:
                return
            try:
                data = os.read(self.master, 65_536)
            except OSError:  # the shell ended
                return
            self.text += decoder.decode(data).replace("\r\n", "\n")

    def _await(self, start: int) -> int | None:
        """Wait for a prompt; return the exit code that it shows, None where a command goes on. Answer questions."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            shown = self.text[start:]
            if match := re.search(rf"{READY}(\d+)@|{MORE}", shown):
                return int(match[1]) if match[1] else None
            for question, answer in self.answers.items():
                if re.search(rf"{question}\Z", shown):
                    start = len(self.text)
                    self._type(f"{answer}\n")
            time.sleep(0.005)
        raise AssertionError(f"no prompt after {SECONDS} s:\n{self.text[start:]}")
