"""The budget of a call."""

from tests.support.chapters.answers import reason, refusal, text_of
from tests.support.story import Cast, chapter

WRONG = ("", "-1", "+1", "1e3", "NaN", "inf", "1,5", "0.25, 0.5", ".5", "5.", "0.0000001", "1000000000.000001")


@chapter()
async def a_budget_below_the_minimum_cost_is_refused_with_both_numbers(cast: Cast) -> None:
    for wish in cast.me.wishes("send", "stream"):
        error = await refusal(cast.me.ask(wish, cast.me.sending("0.25", agent="priced"), **{"X-Budget-USD": "0.49"}))
        assert (error["code"], reason(cast.me, error)) == (-38006, "BUDGET_EXCEEDED")
        assert all(fact in str(error["data"]) for fact in ("X-Budget-USD", "0.49", "0.50"))


@chapter()
async def a_budget_is_the_most_that_a_task_may_cost(cast: Cast) -> None:
    wire = cast.me.sending("0.25", agent="priced-quick")
    assert text_of(cast.me.sent(await cast.me.ask("send", wire, **{"X-Budget-USD": "0.5"}))[1]) == "0.25 of 0.5"
    wire = cast.me.sending("0.25 0.5", agent="priced-quick")
    task = cast.me.sent(await cast.me.ask("send", wire, **{"X-Budget-USD": "0.600000"}))[1]
    assert cast.me.state(task["status"]) == "failed"
    assert "it has cost 0.75 USD, and may cost 0.60 USD" in str(task["status"])


@chapter()
async def a_budget_that_is_no_amount_is_refused_by_the_name_of_its_header(cast: Cast) -> None:
    for value in WRONG:
        wire = cast.me.sending("0.25", agent="priced-quick")
        error = await refusal(cast.me.ask("send", wire, **{"X-Budget-USD": value}))
        assert error["code"] == -32602, value
        assert "X-Budget-USD must be dollars as digits" in error["message"], value


@chapter("batch")
async def a_budget_of_a_batch_is_that_of_each_member(cast: Cast) -> None:
    members = [cast.me.call("send", cast.me.sending(text, agent="priced-quick")) for text in ("0.25", "0.5 0.5")]
    _, answers = await cast.me.post(members, **{"X-Budget-USD": "0.75"})
    states = [cast.me.state(cast.me.sent(answer["result"])[1]["status"]) for answer in answers]
    assert states == ["completed", "failed"]
