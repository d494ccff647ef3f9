"""Files: inline where small, links where large."""

from base64 import b64decode
from typing import Any
from urllib.parse import urlsplit

from tests.support.chapters.answers import refusal, text_of
from tests.support.speaker import Json
from tests.support.story import Cast, chapter

_PROTO = {"fileWithUri": "uri", "fileWithBytes": "bytes"}


def files_of(wire: Any) -> list[Json]:
    """Return every link or bytes of a file in an answer: url or uri, bytes, name, type."""
    if isinstance(wire, list):
        return [found for item in wire for found in files_of(item)]
    if not isinstance(wire, dict):
        return []
    if "file" in wire and isinstance(wire["file"], dict):
        file = {_PROTO.get(name, name): value for name, value in wire["file"].items()}
        names = {"url": "uri", "raw": "bytes", "name": "name", "type": "mimeType"}
        return [{name: file.get(member) for name, member in names.items()}]
    if "kind" not in wire and ("url" in wire or "raw" in wire):
        names = {"url": "url", "raw": "raw", "name": "filename", "type": "mediaType"}
        return [{name: wire.get(member) for name, member in names.items()}]
    return files_of(list(wire.values()))


async def downloaded(cast: Cast, url: str) -> bytes:
    """Return the bytes behind a link, fetched without a key."""
    place = urlsplit(url)
    assert place.scheme == "http"
    async with cast.me.door.ask("GET", f"{place.path}?{place.query}", b"", {}) as reply:
        assert reply.status == 200
        return b"".join([chunk async for chunk in reply.chunks])


@chapter()
async def a_small_file_comes_back_inline_and_a_large_one_as_a_link(cast: Cast) -> None:
    small, large = b"\0small\xff", bytes(range(256)) * 300
    for content, name in ((small, "a.png"), (large, "b.png")):
        wish = cast.me.sending("", agent="echo") | {"message": cast.me.attaching(content, "image/png", name)}
        task = cast.me.sent(await cast.me.ask("send", wish))[1]
        found = files_of([task["artifacts"], task["history"]])
        assert [(file["name"], file["type"]) for file in found] == [(name, "image/png")] * 2
        if content is small:
            assert [b64decode(file["raw"]) for file in found] == [small] * 2
            continue
        assert [file["raw"] for file in found] == [None] * 2
        assert await downloaded(cast, found[0]["url"]) == large
        repeated = cast.me.sent(await cast.me.ask("send", wish))[1]
        assert repeated["id"] == task["id"]
        listed = await cast.me.ask("list", cast.me.listing(context=task["contextId"], artifacts=True))
        assert await downloaded(cast, files_of(listed)[0]["url"]) == large
        again = files_of((await cast.me.get(task["id"]))["artifacts"])
        assert again[0]["url"].partition("?")[0] == found[0]["url"].partition("?")[0]


@chapter()
async def a_stream_links_to_the_files_that_an_agent_makes(cast: Cast) -> None:
    wish = cast.me.sending("", agent="files")
    attached = cast.me.attaching(b"x" * 50_000, "text/plain", "x.txt")
    parts = "parts" if "parts" in attached else "content"
    wish["message"] = attached | {parts: [*attached[parts], cast.me.data({"sizes": [100, 70_000]})]}
    frames = await cast.me.follow("stream", wish)
    made = [files_of(frame.value["artifact"])[0] for frame in frames if frame.kind == "artifact"]
    assert b64decode(made[0]["raw"]) == bytes(100)
    assert await downloaded(cast, made[1]["url"]) == bytes(70_000)
    assert files_of(frames[0].wire)[0]["raw"] is None
    said = [frame.value["status"].get("message") for frame in frames if frame.kind == "status"]
    assert any(message and "x.txt: 50000 bytes" in message["parts"][0]["text"] for message in said)


@chapter()
async def nobody_can_name_a_file_of_the_server(cast: Cast) -> None:
    reference = "taskdesk-file:20260101-" + "0" * 32 + "/x"
    wish, place = cast.me.referring(reference)
    error = await refusal(cast.me.ask("send", wish))
    assert error["code"] == -32602
    assert place in str(error["data"])
    said = f'{reference} "url":"{reference}"'
    assert text_of(await cast.me.send(said, agent="echo")) == said
