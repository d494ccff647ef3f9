"""Uses pages in Chromium and prints what it saw, as JSON lines, in an environment of its own.

python walk.py BASE PASSWORD KEY PATH...: the box of the page at /, then each path at each width, light and dark.
CHROMIUM names a browser that is installed, PICTURES a folder for what each page looked like.
"""

import json
import os
import sys
import time
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = (1440, 1280, 390)
LOOK = """() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const seen = [...document.querySelectorAll('#result_list thead th, #result_list tbody tr:first-child > *')];
    const times = ['show_time', 'show_created_at', 'show_seen_at', 'show_last_at', 'show_last_login', 'show_minute'];
    const newest = seen.filter((cell) => times.some((name) => cell.matches(`.column-${name}, .field-${name}`)));
    const list = document.querySelector('#changelist .results');
    const edge = list ? Math.min(innerWidth, list.getBoundingClientRect().right) : innerWidth;
    const cut = newest.filter((cell) => {
        const box = cell.getBoundingClientRect();
        return box.right > edge + 1 || box.left < 0;
    });
    const broken = [...document.querySelectorAll('#result_list .td-mark, #result_list .td-whole')].filter(
        (mark) => mark.getClientRects().length > 1).map((mark) => mark.textContent);
    return {
        wide, cut: cut.map((cell) => cell.className), broken, newest: newest.length,
        rows: document.querySelectorAll('#result_list tbody tr').length, violations: window.violations || [],
    };
}"""
WATCH = """window.violations = []; document.addEventListener('securitypolicyviolation', (event) =>
    window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));"""


def problems(page: Page, address: str, errors: list[str]) -> list[str]:
    """Return the problems of one page."""
    errors.clear()
    response = page.goto(address)
    found = [] if response and response.status in {200, 404} else [f"status {response and response.status}"]
    look: dict[str, Any] = page.evaluate(LOOK)
    if look["wide"] > 0:
        found.append(f"the page is {look['wide']} px too wide")
    found += [f"cut: {name}" for name in look["cut"]]
    found += [f"in two lines: {text}" for text in look["broken"]]
    found += [f"policy: {violation}" for violation in look["violations"]]
    if look["rows"] and not look["newest"] and "/auth/" not in address:
        found.append("a list without its newest column")
    # A missing page is an error on the console as well.
    return found + [error for error in errors if not (response and response.status == 404 and "404" in error)]


def opened(browser: Browser, width: int, scheme: str, errors: list[str]) -> Page:
    """Return a page of that width, whose errors are collected."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    context.add_init_script(WATCH)
    page = context.new_page()
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page


def log_in(page: Page, base: str, password: str) -> None:
    page.goto(f"{base}/admin/login/?next=/admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    page.press("#id_password", "Enter")
    page.wait_for_url(f"{base}/admin/")


def told(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def walk(browser: Browser, base: str, password: str, paths: list[str], pictures: str) -> None:
    for width in WIDTHS:
        for scheme in ("light", "dark"):
            errors: list[str] = []
            page = opened(browser, width, scheme, errors)
            told(
                path="/admin/login/",
                width=width,
                scheme=scheme,
                problems=problems(page, f"{base}/admin/login/", errors),
            )
            log_in(page, base, password)
            for number, path in enumerate(paths):
                told(path=path, width=width, scheme=scheme, problems=problems(page, base + path, errors))
                if pictures:
                    page.screenshot(path=f"{pictures}/{number:02}-{width}-{scheme}.png")
            page.context.close()


def until(page: Page, expression: str, wanted: Any = None) -> None:
    """Wait until the expression is true. Playwright's own way evaluates text in the page, which the policy forbids."""
    ends = time.monotonic() + 60
    while not page.evaluate(expression, wanted):
        if time.monotonic() > ends:
            raise TimeoutError(f"{expression} ({wanted}) within a minute")
        page.wait_for_timeout(20)


def converse(browser: Browser, base: str, key: str) -> None:
    """Use the box of the page at / as a person does: by the keyboard, with the key from the printed address."""
    errors: list[str] = []
    page = opened(browser, 390, "light", errors)
    page.goto(f"{base}/#key={key}")
    told(step="address", hash=page.evaluate("location.hash"), key=page.input_value("#key") == key)
    page.select_option("#agent", "story")
    page.fill("#text", "Tell me a story")
    page.press("#text", "Control+Enter")
    until(page, "document.getElementById('answer').textContent.length > 10")
    part = page.text_content("#answer") or ""
    until(page, "document.getElementById('state').textContent === 'completed'")
    told(step="story", streamed=len(part), whole=page.text_content("#answer"))
    page.select_option("#agent", "interview")
    for said, shown in (("hi", "What is your name?"), ("Ann", "What can I do for you?"), ("tea", "Ann wishes: tea")):
        page.fill("#text", said)
        page.click("#send")
        until(page, "words => document.getElementById('answer').textContent.includes(words)", shown)
        until(page, "!document.getElementById('send').disabled")
    told(step="interview", state=page.text_content("#state"), answer=page.text_content("#answer"))
    page.fill("#key", "tdk_wrong")
    page.fill("#text", "hi")
    page.click("#send")
    page.wait_for_selector("#state.wrong")
    told(step="wrong key", state=page.text_content("#state"))
    # A refusal with 401 is an error of the console, too.
    told(step="errors", errors=[error for error in errors if "401" not in error], policy=page.evaluate("violations"))


def main() -> None:
    base, password, key, *paths = sys.argv[1:]
    with sync_playwright() as playwright:
        chromium = os.environ.get("CHROMIUM") or None
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        converse(browser, base, key)
        walk(browser, base, password, paths, os.environ.get("PICTURES", ""))
        browser.close()


if __name__ == "__main__":
    main()
