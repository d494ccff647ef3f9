"""The code blocks of the documents, each with what its language and the marks above it say of it.

A block of `sh` is pasted into a terminal, line by line; blocks of `output` behind it show what it prints, `…` for what
differs. Marks are comments above a block, which readers of the page do not see:

- `<!-- terminal: NAME -->`: it goes on until Ctrl-C, in a terminal of its own; the next block of that name follows it.
  `<!-- terminal: NAME, instead of NAME, NAME -->`: what runs in those gets Ctrl-C first.
- `<!-- save as: PATH -->`: the block is a file of that name, seen from the clone.
- `<!-- exits with: CODE -->`: of its last command; all others exit with 0.
- `<!-- needs: PROGRAM -->`: what a reader has only if the text says so; several by comma.
- `<!-- long: REASON -->`: run by `make faults` only.
- `<!-- not run: REASON -->`: by no test.

A document that begins with `<!-- continues: PATH -->` is read after that one, in the same terminals.
"""

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

SHELL, OUTPUT = "sh", "output"
SHOWN = ("text", "json")
"""Languages of what is only to be looked at."""
MARKS = ("terminal", "save as", "exits with", "needs", "long", "not run")
BLOCK = re.compile(
    r"(?P<marks>(?:^ *<!-- [^\n]* -->\n)*)^ *```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
MARK = re.compile(r"<!-- ([a-z ]+): (.+?) -->")
CONTINUES = re.compile(r"\A<!-- continues: (\S+) -->$", re.MULTILINE)
LINK = re.compile(r"\]\(([\w/-]+\.md)\)")
COMMAND = re.compile(r"^(\$ |make |export |curl |\.venv/|python3? |pip |(\S+/)?manage\.py )", re.MULTILINE)
LIST = re.compile(r" *([-*]|\d+\.) ")


class Block(NamedTuple):
    """A fenced block of a document."""

    document: str
    line: int
    language: str
    text: str
    marks: dict[str, str]
    outputs: tuple[str, ...] = ()
    """The output, as the blocks behind the command show it."""

    @property
    def place(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language == SHELL and not {"save as", "not run"} & self.marks.keys()

    @property
    def terminals(self) -> list[str]:
        """Return the terminal in which it goes on, then those that get Ctrl-C first; none if it ends by itself."""
        return re.split(r", (?:instead of )?", self.marks["terminal"]) if "terminal" in self.marks else []

    @property
    def needs(self) -> list[str]:
        """Return the programs that a reader may lack."""
        return self.marks["needs"].split(", ") if "needs" in self.marks else []

    def mistakes(self) -> list[str]:
        """Return what keeps it from being tried, each as a sentence."""
        found = [f"{self.place}: no such mark as {mark}" for mark in self.marks if mark not in MARKS]
        if "not run" in self.marks or "save as" in self.marks or self.language == SHELL:
            return found
        if self.language == "python":
            compile(self.text, self.place, "exec")  # a part of a program
        elif self.language not in SHOWN:
            found.append(f"{self.place}: a block of {self.language or 'no language'}: run it, or say why not")
        elif COMMAND.search(self.text):
            found.append(f"{self.place}: a command in a block of {self.language}, which is not run")
        return found


def blocks(root: Path, document: str) -> list[Block]:
    """Return the blocks of a document, those of output with what prints it."""
    text = (root / document).read_text(encoding="utf-8")
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(document, line, match["language"], match["text"], dict(MARK.findall(match["marks"])))
        if block.language != OUTPUT:
            found.append(block)
        else:
            assert found, f"{block.place}: nothing prints this"
            assert found[-1].runs or "not run" in found[-1].marks, f"{block.place}: what prints this is not run"
            found[-1] = found[-1]._replace(outputs=(*found[-1].outputs, block.text))
    return found


def documents(root: Path) -> list[str]:
    """Return the paths of the documents, in the order in which they are read: that of the README's links."""
    linked = [
        link for link in LINK.findall((root / "README.md").read_text(encoding="utf-8")) if (root / link).is_file()
    ]
    others = sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))
    return list(dict.fromkeys(["README.md", *linked, *others]))


def saved(root: Path, name: str) -> str:
    """Return a file that a document lets its reader save."""
    every = [block for document in documents(root) for block in blocks(root, document)]
    (text,) = [block.text for block in every if Path(block.marks.get("save as", "")).name == name]
    return text


def indented(root: Path, document: str) -> list[str]:
    """Return the places of code that is indented and not fenced, which would be tried by no test."""
    text = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), (root / document).read_text(encoding="utf-8"))
    found, in_list = [], False
    for number, (before, line) in enumerate(pairwise(["", *text.splitlines()]), 1):
        in_list = bool(LIST.match(line)) or (in_list and (not line or line.startswith(" ")))
        if line.startswith("    ") and not before and not in_list:
            found.append(f"{document}:{number}: code that is indented: fence it, and say its language")
    return found


def stories(root: Path, documents: list[str]) -> dict[str, list[Block]]:
    """Return what is read in one sitting, by the document that begins it."""
    first: dict[str, str] = {}
    for document in documents:
        match = CONTINUES.search((root / document).read_text(encoding="utf-8"))
        first[document] = first[match[1]] if match else document
    found = {
        name: [block for document in documents if first[document] == name for block in blocks(root, document)]
        for name in dict.fromkeys(first.values())
    }
    return {name: story for name, story in found.items() if any(block.runs for block in story)}
