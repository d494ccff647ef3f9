"""A version that differs little is a file that makes it by replace(), and two lines in a2a/dialects/__init__.py."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import a2a

FILE = """
from msgspec.structs import replace

from a2a.dialects import {base}

DIALECT = replace({base}.DIALECT, name="a2a-{version}", version="{version}", methods={base}.methods("{version}"))
"""
IMPORT, LIST = "from a2a.dialects import rest_0_x, v0_2,", "= (v1_0.DIALECT,"
SEEN = """
from a2a import cards, rest
from a2a.dialects import BY_NAME, choose, unsupported
from a2a.dialects.card_choice import card_encoder

(send, said), (create, hook) = {params}.items()
dialect, method = choose(send, "{version}.0")
assert dialect is BY_NAME["a2a-{version}"]
assert choose(send, None)[0] is dialect, "the newest is meant by default"
assert method.decode(said).push_config.version == "{version}"
assert dialect.methods[create].decode(hook).config.version == "{version}"
assert cards.VERSIONS == {versions}
assert unsupported("9.9").facts["supportedVersions"] == ",".join(["0.2", *reversed({versions})])
assert card_encoder("agent-card.json", "{version}") is dialect.encode_card
rest.check_version(rest.{family}, "{version}")
assert rest.NEW.spoken(None, "{version}") is (dialect if rest.{family} is rest.NEW else BY_NAME["a2a-1.0"])
print("seen")
"""
HOOK = {"url": "https://x.example"}
SAID = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
OLD_SAID = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
NEW = {
    "SendMessage": {"message": SAID, "configuration": {"taskPushNotificationConfig": HOOK}},
    "CreateTaskPushNotificationConfig": {"taskId": "t"} | HOOK,
}
OLD = {
    "message/send": {"message": OLD_SAID, "configuration": {"pushNotificationConfig": HOOK}},
    "tasks/pushNotificationConfig/set": {"taskId": "t", "pushNotificationConfig": HOOK},
}


@pytest.mark.parametrize(
    ("version", "base", "params", "family"), [("1.1", "v1_0", NEW, "NEW"), ("0.4", "v0_3", OLD, "OLD")]
)
def test_a_version_that_differs_little_takes_a_file_and_two_lines(
    tmp_path: Path, version: str, base: str, params: object, family: str
) -> None:
    here = tmp_path / "a2a"
    shutil.copytree(Path(a2a.__file__).parent, here, ignore=shutil.ignore_patterns("__pycache__"))
    name, table = f"v{version.replace('.', '_')}", here / "dialects" / "__init__.py"
    (here / "dialects" / f"{name}.py").write_text(FILE.format(base=base, version=version), encoding="utf-8")
    source = table.read_text(encoding="utf-8")
    assert (source.count(IMPORT), source.count(LIST)) == (1, 1)
    source = source.replace(IMPORT, f"{IMPORT} {name},").replace(LIST, f"= ({name}.DIALECT, v1_0.DIALECT,")
    table.write_text(source, encoding="utf-8")
    wanted = SEEN.format(params=params, version=version, versions=(version, "1.0", "0.3"), family=family)
    done = subprocess.run([sys.executable, "-c", wanted], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("seen\n", "")
