"""The bill of materials, made by the pinned tool as `make sbom` makes it."""

import re
import subprocess
from pathlib import Path

import orjson
import pytest

from tests.clients import environments
from tests.faults.nodes import ROOT

pytestmark = pytest.mark.clients


def test_the_bill_of_materials_has_every_locked_package_with_its_hashes(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The members are those that CycloneDX 1.6 demands. The tool validates its output against the schema, too."""
    audit = environments.audit(request.config.cache.mkdir("clients"))
    bill = tmp_path / "sbom.json"
    line = ["make", "--old-file=.venv/audit.stamp", "sbom", f"AUDIT={audit}", f"SBOM={bill}"]
    subprocess.run(line, cwd=ROOT, check=True, timeout=300)
    found = orjson.loads(bill.read_bytes())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["name"] == "taskdesk"
    hashes = {
        (each["name"], each["version"]): {
            item["content"] for place in each["externalReferences"] for item in place["hashes"]
        }
        for each in found["components"]
    }
    assert all(each["type"] == "library" and each["bom-ref"] for each in found["components"])
    assert all(each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in found["components"])
    lock = re.split(r"\n(?=[a-z])", (ROOT / "requirements.lock").read_text(encoding="utf-8").strip())
    locked = {
        (name[1].partition("[")[0], name[2]): set(re.findall(r"sha256:([0-9a-f]{64})", package))
        for package in lock
        if (name := re.match(r"([^=]+)==(\S+)", package))
    }
    assert hashes == locked
