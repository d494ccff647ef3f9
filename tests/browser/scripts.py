"""Opens pages that show hostile texts in Chromium, and prints what ran, in an environment of its own.

python scripts.py BASE PASSWORD KEY TEXT PATH...: the box of the page at /, to whose agent it sends the text, then each
path of the admin.
"""

import json
import os
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright

WATCH = """window.violations = []; document.addEventListener('securitypolicyviolation', (event) =>
    window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));"""
LOOK = """(text) => ({
    violations: window.violations,
    marked: document.documentElement.hasAttribute('data-ran'),
    shown: document.body.innerText.includes(text),
    links: [...document.querySelectorAll('a')].filter((link) => /^(javascript|data):/i.test(link.href)).length,
})"""
SHOWN = "onerror="
"""A piece of the text that a page which shows it has among its words."""


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def converse(page: Page, base: str, key: str, text: str) -> None:
    page.goto(f"{base}/#key={key}")
    page.select_option("#agent", "echo")
    page.fill("#text", text)
    page.click("#send")
    for _ in range(600):
        if page.text_content("#state") == "completed":
            break
        page.wait_for_timeout(100)
    tell(path="/", **page.evaluate(LOOK, SHOWN))


def log_in(page: Page, base: str, password: str) -> None:
    page.goto(f"{base}/admin/login/?next=/admin/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", password)
    with page.expect_navigation():
        page.press("#id_password", "Enter")


def main() -> None:
    base, password, key, text, *paths = sys.argv[1:]
    dialogs: list[str] = []
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or None, args=arguments)
        page = browser.new_page()
        page.add_init_script(WATCH)
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        converse(page, base, key, text)
        log_in(page, base, password)
        for path in paths:
            page.goto(base + path)
            tell(path=path, **page.evaluate(LOOK, SHOWN))
        tell(dialogs=dialogs)
        browser.close()


if __name__ == "__main__":
    main()
