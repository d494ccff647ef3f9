"""``python -m tests.supply FOLDER LOCK ...``: ask a database for vulnerabilities of the locked packages, with the
pip-audit in FOLDER.

The exit code is 0 if all packages were checked and none is vulnerable, 1 if any is, and 3 if no database could be
asked about some of them. pip-audit itself calls the last case a success.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

SERVICES = ("pypi", "osv")
"""The databases of pip-audit, in the order in which they are asked."""
SECONDS = 600
VULNERABLE, UNCHECKED = 1, 3


class Advisory(NamedTuple):
    """A known vulnerability of a package."""

    package: str
    version: str
    id: str
    fixes: tuple[str, ...]

    def __str__(self) -> str:
        remedy = f"fixed in {', '.join(self.fixes)}" if self.fixes else "no fixed version"
        return f"{self.package} {self.version}: {self.id}, {remedy}"


class Report(NamedTuple):
    """The packages that a database was asked about."""

    checked: frozenset[str]
    unchecked: Mapping[str, str]
    """Why a package was not checked, by name."""
    advisories: frozenset[Advisory]


def read(output: bytes) -> Report:
    """Read the JSON of pip-audit."""
    packages: list[dict[str, Any]] = orjson.loads(output)["dependencies"]
    return Report(
        checked=frozenset(each["name"] for each in packages if "skip_reason" not in each),
        unchecked={each["name"]: each["skip_reason"] for each in packages if "skip_reason" in each},
        advisories=frozenset(
            Advisory(each["name"], each["version"], found["id"], tuple(found["fix_versions"]))
            for each in packages
            for found in each.get("vulns", ())
        ),
    )


def ask(folder: str, service: str, lock: str) -> Report:
    """Ask a database about the packages of a lock. If it cannot be reached, no package was checked."""
    fixed = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
    line = [f"{folder}/bin/pip-audit", *fixed, "--vulnerability-service", service, "--requirement", lock]
    done = subprocess.run(line, capture_output=True, timeout=SECONDS, check=False)
    if done.stdout.startswith(b"{"):
        return read(done.stdout)
    reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]
    return Report(frozenset(), {f"all of {lock}": reason}, frozenset())


def best(reports: Iterable[Report]) -> Report:
    """Return the first report in which each package was checked, or else the one in which most were."""
    found = Report(frozenset(), {}, frozenset())
    for report in reports:
        if not report.unchecked:
            return report
        if not found.unchecked or len(report.checked) > len(found.checked):
            found = report
    return found


def conclude(reports: Mapping[str, Report]) -> tuple[int, list[str]]:
    """Return the exit code and the lines to print for the reports of all locks."""
    lines, advisories = [], set[Advisory]()
    unchecked = False
    for lock, report in reports.items():
        advisories |= report.advisories
        lines.append(f"{lock}: {len(report.checked)} packages checked")
        if report.unchecked:
            unchecked = True
            name, reason = next(iter(report.unchecked.items()))
            lines.append(f"NOT CHECKED in {lock}: {len(report.unchecked)}, such as {name}: {reason}")
    lines += [f"VULNERABLE: {advisory}" for advisory in sorted(advisories)]
    if advisories:
        return VULNERABLE, lines
    if unchecked:
        return UNCHECKED, [*lines, "No database of vulnerabilities could be asked about these: run this elsewhere."]
    return 0, [*lines, "No known vulnerabilities."]


def main(arguments: Sequence[str]) -> int:
    folder, *locks = arguments
    code, lines = conclude({lock: best(ask(folder, service, lock) for service in SERVICES) for lock in locks})
    sys.stdout.write("\n".join(lines) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
