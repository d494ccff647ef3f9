"""Webhooks: registered, refused, and called."""

import asyncio

from tests.conftest import PATIENCE
from tests.support.chapters.answers import refusal
from tests.support.receiver import receiver
from tests.support.speaker import Json
from tests.support.story import Cast, chapter


def scheme_of(config: Json) -> Json:
    """Return the scheme of the authentication, in one word for both forms."""
    shown = config["authentication"]
    assert "credentials" not in shown
    return shown.get("scheme") or shown["schemes"][0]


@chapter()
async def a_webhook_is_registered_read_listed_and_removed(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    url = "http://127.0.0.1:65001/hook?a=b"
    wish = cast.me.webhook_of(task, url, id="mine", token="tok", credentials="secret")
    ((of, written),) = cast.me.webhooks(await cast.me.ask("push", wish))
    assert (of, written["id"], written["url"], written["token"]) == (task, "mine", url, "tok")
    assert scheme_of(written) == "Bearer"
    read = cast.me.webhooks(await cast.me.ask("pushed", cast.me.webhook_id(task, "mine")))
    assert read == cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))
    ((_, shown),) = read
    assert "token" not in shown
    assert (shown["id"], shown["url"], scheme_of(shown)) == ("mine", url, "Bearer")
    # A name that does not resolve now may resolve later. An id replaces its webhook; another id adds one.
    await cast.me.ask("push", cast.me.webhook_of(task, "https://nobody.invalid/", id="mine"))
    await cast.me.ask("push", cast.me.webhook_of(task, url + "&c=d", id="mine"))
    await cast.me.ask("push", cast.me.webhook_of(task, url))
    both = [config for _, config in cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))]
    assert [config["url"] for config in both] == [url + "&c=d", url]
    assert (both[1]["id"] == task) is cast.me.default_webhook
    default = cast.me.ask("pushed", cast.me.webhook_id(task, "default"))
    if cast.me.default_webhook:
        assert [config for _, config in cast.me.webhooks(await default)] == both[1:]
    else:
        assert (await refusal(default))["code"] == cast.me.absent_webhook
    second = "default" if cast.me.default_webhook else both[1]["id"]
    for name in ("mine", second, "mine"):
        assert await cast.me.ask("unpush", cast.me.webhook_id(task, name)) == cast.me.nothing
    assert cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task))) == []
    assert (await refusal(cast.me.ask("pushed", cast.me.webhook_id(task, "mine"))))["code"] == cast.me.absent_webhook


@chapter()
async def the_webhooks_of_others_are_told_in_the_bytes_of_a_missing_task(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    await cast.me.ask("push", cast.me.webhook_of(task, "http://127.0.0.1:65001/", id="mine"))
    for wish, params in {
        "push": lambda id: cast.me.webhook_of(id, "http://127.0.0.1:65001/", id="mine"),
        "pushed": lambda id: cast.me.webhook_id(id, "mine"),
        "pushes": cast.me.webhook_id,
        "unpush": lambda id: cast.me.webhook_id(id, "mine"),
    }.items():
        foreign = await refusal(cast.stranger.ask(wish, params(task)))
        missing = await refusal(cast.stranger.ask(wish, params("0" * len(task))))
        assert str(foreign).replace(task, "0" * len(task)) == str(missing)
        assert foreign["code"] == -32001
    assert cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))


@chapter()
async def a_webhook_that_may_not_be_is_refused_with_its_field(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    path, inline = cast.me.webhook_path, f"configuration.{cast.me.webhook_name}."
    for wrong, field in {
        "ftp://127.0.0.1/": "url",
        "http://10.0.0.1/": "url",
        "https://169.254.169.254/latest": "url",
        "https://user@example.org/": "url",
        "hook": "url",
        "http://127.0.0.1:22/": "url",
    }.items():
        error = await refusal(cast.me.ask("push", cast.me.webhook_of(task, wrong)))
        assert (error["code"], f"'{path}{field}'" in str(error["data"])) == (-32602, True), (wrong, error)
    for more, field in (({"token": "a\r\nb: c"}, "token"), ({"id": "i" * 256}, "id"), ({"token": 1}, "token")):
        error = await refusal(cast.me.ask("push", cast.me.webhook_of(task, "http://127.0.0.1:65001/", **more)))
        assert (error["code"], f"'{path}{field}'" in str(error["data"])) == (-32602, True), error
    params = cast.me.sending("hello", agent="echo")
    params["configuration"][cast.me.webhook_name] = cast.me.webhook("http://10.0.0.1/")
    error = await refusal(cast.me.ask("send", params))
    assert (error["code"], f"'{inline}url'" in str(error["data"])) == (-32602, True)


@chapter()
async def a_webhook_that_comes_after_the_end_hears_of_the_end_once(cast: Cast) -> None:
    done = (await cast.me.send("hello", agent="echo"))["id"]
    with receiver() as there:
        for number in range(2):
            await cast.me.ask("push", cast.me.webhook_of(done, f"{there.url}/hook", id="mine", token=f"tok-{number}"))
            await cast.me.ask("push", cast.me.webhook_of(done, f"{there.url}/other", id=f"other-{number}"))
        async with asyncio.timeout(PATIENCE):
            while len(there.got) < 3:  # noqa: ASYNC110  # another thread
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
    assert sorted(got.path for got in there.got) == ["/hook", "/other", "/other"]
    assert all(cast.me.completed_mark in got.raw.decode() and done in got.raw.decode() for got in there.got)


@chapter()
async def a_webhook_that_comes_with_a_message_gets_the_whole_story(cast: Cast) -> None:
    with receiver() as there:
        params = cast.me.sending("one", agent="asks")
        params["configuration"][cast.me.webhook_name] = cast.me.webhook(
            f"{there.url}/hook", token="tok", credentials="secret"
        )
        _, task = cast.me.sent(await cast.me.ask("send", params))
        done = await cast.me.send("two", task=task["id"])
        assert cast.me.state(done["status"]) == "completed"
        async with asyncio.timeout(PATIENCE):
            while not (there.got and cast.me.completed_mark in there.got[-1].raw.decode()):  # noqa: ASYNC110  # another thread
                await asyncio.sleep(0.02)
    seqs = [got.seq for got in there.got]
    assert seqs == sorted(set(seqs))
    assert seqs[0] == 1
    for got in there.got:
        assert got.headers["authorization"] == "Bearer secret"
        assert got.headers["x-a2a-notification-token"] == got.headers["a2a-notification-token"] == "tok"
        assert got.headers.get("a2a-version", "") == cast.me.webhook_version
        assert cast.me.delivered(got.headers["content-type"], got.json) == task["id"]
    if cast.me.deliveries_are_answers:
        assert there.got[-1].json == done
