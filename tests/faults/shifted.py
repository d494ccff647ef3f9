"""``python tests/faults/shifted.py DAYS manage.py serve ...``: a process whose machine's clock is wrong by so much."""

import runpy
import sys
from datetime import UTC, datetime, timedelta

import time_machine

from tests.faults.forks import ROOT, SHIFTED
from tests.faults.nodes import Node


def shift(node: Node, days: float) -> Node:
    """Let the node, when it is started, run with the wrong time of day."""
    python, *rest = node.command
    node.command = [python, str(SHIFTED), str(days), *rest]
    return node


def main(days: str, *arguments: str) -> None:
    sys.argv = list(arguments)
    sys.path.insert(0, str(ROOT))
    with time_machine.travel(datetime.now(UTC) + timedelta(days=float(days)), tick=True):
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
