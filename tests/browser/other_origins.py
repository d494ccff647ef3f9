"""Follows a task from pages of other origins in Chromium and prints what it saw, in an environment of its own.

python other_origins.py BASE KEY LISTED OTHER: the server, a key of it, and two addresses of the same page, of which the
server lists the first. It prints when the page follows, so that the server can be killed meanwhile. Each line is JSON.
"""

import json
import os
import sys
from typing import Any

from playwright.sync_api import Page, sync_playwright

PATIENCE = 120_000
SECOND_LOOK = 3_000
"""Milliseconds in which a browser would have come back."""
SEND = """async ([base, key]) => {
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ data: { kills: 1 } }] };
    const configuration = { returnImmediately: true };
    const params = { message, configuration, metadata: { agent: 'persists' } };
    return (await tools.call(base, key, 'SendMessage', params)).task.id;
}"""
FOLLOW = """async ([base, key, task]) => {
    window.url = await tools.linkTo(base, key, task);
    window.seen = { link: [], socket: [], ticket: [] };
    window.ends = {};
    const show = (way) => (event, sequence) => seen[way].push([sequence, event]);
    const stop = (way) => (last) => { ends[way] = last; };
    window.source = tools.follow(url, show('link'), stop('link'));
    tools.watch(() => tools.socketTo(base, key), task, show('socket'), stop('socket'));
    tools.watch(() => tools.socketByTicket(base, key), task, show('ticket'), stop('ticket'));
    return url;
}"""
READABLE = """async ([base, key]) => {
    const get = async (path, more) => {
        const answer = await fetch(base + path, more);
        return [answer.status, Boolean(answer.headers.get('X-Request-ID') || answer.headers.get('ETag'))];
    };
    const large = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: ' '.repeat(100000) };
    return {
        card: await get('/.well-known/agent-card.json'),
        rest: await get('/tasks', { headers: { 'X-API-Key': key, 'A2A-Version': '1.0' } }),
        'no key': await get('/tasks'),
        large: await get('/jsonrpc', large),
    };
}"""
REFUSED = """async ([base, key, url]) => {
    const failure = (promise) => promise.then(() => 'an answer', (error) => error.name);
    const source = new Promise((done) => {
        const source = new EventSource(url);
        source.onmessage = () => done('an event');
        source.onerror = () => done(source.readyState);
    });
    const socket = new Promise((done) => {
        const socket = tools.socketTo(base, key);
        socket.onopen = () => done('open');
        socket.onclose = ({ code }) => done(code);
    });
    return {
        call: await failure(tools.call(base, key, 'ListTasks', {})),
        link: await failure(tools.linkTo(base, key, 'any')),
        card: await failure(fetch(`${base}/.well-known/agent-card.json`)),
        stream: await failure(fetch(url)),
        source: await source,
        socket: await socket,
    };
}"""


def report(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_function("window.tools", timeout=PATIENCE)
    return page


def main() -> None:
    base, key, listed, other = sys.argv[1:]
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM") or None, args=arguments)
        page = browser.new_page()
        links: list[str] = []
        page.on("request", lambda request: links.append(request.url) if "/links/" in request.url else None)
        opened(page, listed)
        task = page.evaluate(SEND, [base, key])
        url = page.evaluate(FOLLOW, [base, key, task])
        page.wait_for_function("Object.values(seen).every((events) => events.length > 4)", timeout=PATIENCE)
        report(step="following", task=task)
        page.wait_for_function("Object.keys(ends).length === 3", timeout=PATIENCE)
        attempts = len(links)
        page.wait_for_timeout(SECOND_LOOK)
        report(step="followed", seen=page.evaluate("seen"), ends=page.evaluate("ends"))
        report(step="stopped", state=page.evaluate("source.readyState"), attempts=attempts, later=len(links) - attempts)
        report(step="readable", **page.evaluate(READABLE, [base, key]))
        report(step="refused", **opened(browser.new_page(), other).evaluate(REFUSED, [base, key, url]))
        browser.close()


if __name__ == "__main__":
    main()
