"""Enrols the second factor of an operator in Chromium and logs in with it, in an environment of its own.

python second_factor.py BASE PASSWORD: prints what it saw, as JSON lines. The codes are those of RFC 6238, as an app
computes them from the key that the page shows.
"""

import base64
import hmac
import json
import os
import struct
import sys
import time
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

STEP = 30
ROOM = 10
"""Seconds within which a code is typed and checked."""
WATCH = """window.violations = []; document.addEventListener('securitypolicyviolation', (event) =>
    window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));"""
LOOK = """() => ({
    violations: window.violations,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
})"""
FACTOR = "/admin/second-factor/"
LOCK_SECONDS = 1.5
"""Somewhat longer than the wait after one wrong code."""


def code_of(key: str, later: int = 0) -> str:
    """Return the code of a key in base32, now or some steps later."""
    secret = base64.b32decode(key + "=" * (-len(key) % 8))
    digest = hmac.digest(secret, struct.pack(">Q", int(time.time()) // STEP + later), "sha1")
    place = digest[-1] & 15
    number = struct.unpack(">I", digest[place : place + 4])[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06d}"


def wait_for_room(page: Page) -> None:
    """Wait until the step of the codes has some seconds left: the server learns from a code of the former step that the
    clock of the app is behind, and then refuses codes of the next one."""
    left = STEP - time.time() % STEP
    if left < ROOM:
        page.wait_for_timeout(1000 * left)


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def logged_in(browser: Browser, base: str, password: str, errors: list[str]) -> Page:
    """Return a new visitor's page after the password was given."""
    page = browser.new_context(viewport={"width": 390, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{base}/admin/login/?next=/admin/tasks_app/task/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    with page.expect_navigation():
        page.press("#id_password", "Enter")
    return page


def give(page: Page, code: str) -> None:
    page.fill("#td-code", code)
    with page.expect_navigation():
        page.press("#td-code", "Enter")


def seen(page: Page, base: str) -> dict[str, Any]:
    """Return what the page shows: its path, its error, and whether it asks to enrol."""
    error = page.query_selector(".errornote")
    picture = page.query_selector(".td-qr svg")
    box = picture.bounding_box() if picture else None
    return {
        "path": page.url.removeprefix(base).partition("?")[0],
        "error": error.inner_text() if error else "",
        "picture": bool(box and box["width"] > 100 and box["height"] > 100),
        "look": page.evaluate(LOOK),
    }


def key_on(page: Page) -> str:
    return page.inner_text(".td-qr + p .td-mono").replace(" ", "")


def enrol(page: Page, base: str) -> tuple[str, str, list[str]]:
    """Enrol, after a wrong code. Return the key, the code and the recovery codes."""
    tell(step="enrolment", **seen(page, base))
    right = code_of(key_on(page))
    give(page, "000000" if right != "000000" else "111111")
    tell(step="wrong code", **seen(page, base))
    page.goto(f"{base}/admin/tasks_app/task/")
    tell(step="another page", **seen(page, base))
    wait_for_room(page)
    key = key_on(page)  # Each visit of the page shows a new one.
    code = code_of(key)
    give(page, code)
    codes = [item.inner_text() for item in page.query_selector_all(".td-factor li")]
    tell(step="right code", codes=len(set(codes)), **seen(page, base))
    with page.expect_navigation():
        page.click(".td-factor a.button")
    tell(step="enrolled", **seen(page, base))
    return key, code, codes


def main() -> None:
    base, password = sys.argv[1:]
    errors: list[str] = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or None, args=arguments)
        key, code, codes = enrol(logged_in(browser, base, password, errors), base)
        page = logged_in(browser, base, password, errors)
        tell(step="second login", **seen(page, base))
        give(page, code)
        tell(step="code of the enrolment again", **seen(page, base))
        page.wait_for_timeout(LOCK_SECONDS * 1000)
        wait_for_room(page)
        code = code_of(key, 1)
        give(page, code)
        tell(step="next code", **seen(page, base))
        thief = logged_in(browser, base, password, errors)
        give(thief, code)
        tell(step="next code again", **seen(thief, base))
        thief.goto(f"{base}/admin/")
        tell(step="page of the thief", **seen(thief, base))
        give(thief, codes[0])
        tell(step="recovery code", **seen(thief, base))
        tell(step="errors", errors=errors)
        browser.close()


if __name__ == "__main__":
    main()
