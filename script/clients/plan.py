"""A complete plan from the perspective of an agent and its reviewer, independent of the client library.

`run` is given a function that connects, and connects twice: the second session completes the plan of the
first. A connection has `version`, `tools`, `call`, `links`, `complete`, `resources`, `read`, `prompts`,
`prompt` and `watch`. `connect(decisions, tasks=True)` follows tasks, if `supports_tasks`.
Reviews are decided from the list `decisions`, in order: in a form, or on the review page if the client and
the server support URL mode. The JavaScript version is `plan.mjs`.
"""

import asyncio
import json
import urllib.request

TOOLS = {
    "ping", "create_research_plan", "list_active_plans", "get_plan_status", "modify_plan",
    "list_plan_steps", "get_next_step", "submit_step_result", "report_step_progress",
    "request_user_review", "submit_user_decision", "get_step_context", "get_research_context",
    "log_skill_execution", "submit_feedback",
}  # fmt: skip
PROMPTS = {"run_plan", "resume_plan", "design_plan"}

PLAN = {
    "name": "Heat pumps in old houses",
    "researchQuestion": "Does a heat pump pay off in a house built in 1930?",
    "sessionId": "first",
    "steps": [
        {"stepType": "search", "instructions": "Find three studies"},
        {"stepType": "analyze", "instructions": "Compare their figures", "dependsOn": [1]},
        {"stepType": "synthesize", "instructions": "Write one page", "dependsOn": [2]},
    ],
    "branchingConditions": [
        {
            "afterStepOrder": 1,
            "conditionExpression": "confidence < 0.5",
            "ifTrueAction": "add_steps",
            "actionParams": {"steps": [{"stepType": "search", "instructions": "Find a fourth"}]},
        }
    ],
}


def decide_on_page(url, decision):
    """Decides the review of a page, with the same request as its form."""
    base, review_id = url.split("/reviews/")
    with urllib.request.urlopen(f"{base}/api/v1/reviews") as response:
        reviews = json.load(response)["reviews"]
    [step_id] = [review["stepId"] for review in reviews if review["reviewId"] == review_id]
    request = urllib.request.Request(
        f"{base}/api/v1/steps/{step_id}/decision",
        json.dumps(decision).encode(),
        {"content-type": "application/json"},
    )
    urllib.request.urlopen(request).close()


class ToolError(Exception):
    """The error in a result with `isError`."""

    def __init__(self, text):
        error = json.loads(text)["error"]
        super().__init__(f"{error['code']}: {error['message']}; {error['hint']}")
        self.code, self.details = error["code"], error.get("details")


def parse_result(is_error, text, structured):
    """The structured content of a tool result, which must equal its text."""
    if is_error:
        assert_equal(structured, None, "an error has no structured content")
        raise ToolError(text)
    assert_equal(json.loads(text), structured, "text and structured content")
    return structured


def assert_equal(found, expected, description):
    if found != expected:
        raise AssertionError(f"{description}: expected {expected!r}, found {found!r}")


async def expect_error(call, code):
    try:
        result = await call
    except ToolError as error:
        assert_equal(error.code, code, "error code")
        return error
    raise AssertionError(f"expected `{code}`, got {result!r}")


async def run(connect, version, supports_tasks=False):
    decisions = []
    async with connect(decisions) as client:
        assert_equal(client.version, version, "protocol version")
        await check_capabilities(client)
        created = await client.call("create_research_plan", PLAN)
        plan_id = created["planId"]
        claim = await search(client, plan_id)
        await review(client, decisions, plan_id, claim)
    async with connect(decisions) as client:
        await resume(client, plan_id)
        await check_history(client, plan_id)
        await check_texts(client)
        await wait_for_step(client)
    if supports_tasks:
        async with connect(decisions, tasks=True) as client:
            await wait_for_step(client)
            await review_as_task(client, decisions)
    assert_equal(decisions, [], "unused decisions")


async def check_capabilities(client):
    assert_equal(TOOLS - set(await client.tools()), set(), "missing tools")
    assert_equal(PROMPTS - set(await client.prompts()), set(), "missing prompts")
    assert_equal("onward://plans" in await client.resources(), True, "`onward://plans` is listed")
    pong = await client.call("ping", {})
    assert_equal(pong["server"]["name"], "onward", "server name")
    missing = {"planId": "00000000-0000-0000-0000-000000000000"}
    await expect_error(client.call("get_plan_status", missing), "plan_not_found")
    misspelt = await expect_error(client.call("get_plan_status", {"planID": "x"}), "invalid_input")
    assert_equal("planID" in str(misspelt.details["issues"]), True, "the error names the misspelt field")


async def search(client, plan_id):
    """Completes the first step, whose result adds a step, and that step. Returns the claim of the next."""
    uri = f"onward://plan/{plan_id}"
    async with client.watch(uri) as wait_for_update:
        step = await client.call("get_next_step", {"planId": plan_id, "sessionId": "first"})
        assert_equal((step["status"], step["stepOrder"]), ("step_started", 1), "the first step")
        await wait_for_update()
    claim = {"stepId": step["stepId"], "claimToken": step["claimToken"]}
    await client.call("report_step_progress", {**claim, "note": "two of three", "percent": 66})
    result = {"resultSummary": "Two studies", "result": {"found": 2}, "confidence": 0.3}
    done = await client.call("submit_step_result", {**claim, **result, "claimNext": True})
    assert_equal(done["branchTaken"]["action"], "add_steps", "the branch")
    assert_equal(done["nextStep"]["instructions"], "Find a fourth", "the added step")
    again = await client.call("submit_step_result", {**claim, **result, "claimNext": True})
    assert_equal(again, done, "a repeated result returns the same response")
    other = {**claim, **result, "resultSummary": "Something else"}
    late = await expect_error(client.call("submit_step_result", other), "illegal_transition")
    assert_equal("keptArtifactId" in late.details, True, "a rejected result is stored")
    claim = {key: done["nextStep"][key] for key in ("stepId", "claimToken")}
    done = await client.call(
        "submit_step_result",
        {**claim, "resultSummary": "One more", "confidence": 0.9, "claimNext": True},
    )
    return {key: done["nextStep"][key] for key in ("stepId", "claimToken")}


async def review(client, decisions, plan_id, claim):
    """The reviewer requests a change, then declines the form and approves through the agent."""
    decisions.append({"decision": "modify", "feedback": "In euros, please"})
    request = {
        **claim,
        "summary": "It pays off after 14 years",
        "questions": ["Is that what you meant?"],
    }
    modified = await client.call("request_user_review", request)
    assert_equal((modified["decision"], modified["stepStatus"]), ("modify", "in_progress"), "the decision")
    step = await client.call("get_next_step", {"planId": plan_id, "sessionId": "first"})
    assert_equal(step["claimToken"], claim["claimToken"], "the claim after a decision")
    assert_equal(step["instructions"].endswith("In euros, please"), True, "feedback is in the instructions")
    decisions.append(None)
    declined = await client.call("request_user_review", {**request, "summary": "28,000 euros"})
    assert_equal((declined["stepStatus"], declined.get("decision")), ("awaiting_input", None), "a declined form")
    pending = await client.call("get_next_step", {"planId": plan_id})
    assert_equal(pending["status"], "awaiting_review", "a plan with a pending review")
    decided = await client.call(
        "submit_user_decision", {"stepId": claim["stepId"], "decision": "approve"}
    )
    assert_equal((decided["stepStatus"], decided["planStatus"]), ("completed", "executing"), "approval")


async def resume(client, plan_id):
    """A second session reads the context and completes the plan."""
    context = await client.call("get_research_context", {"planId": plan_id, "sessionId": "second"})
    statuses = [step["status"] for step in context["steps"]]
    assert_equal(statuses, ["completed", "completed", "completed", "pending"], "steps of the first session")
    step = await client.call(
        "get_next_step", {"planId": plan_id, "sessionId": "second", "includeStalled": True}
    )
    assert_equal(step["instructions"], "Write one page", "the last step")
    done = await client.call(
        "submit_step_result",
        {
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "resultSummary": "One page",
            "claimNext": True,
        },
    )
    assert_equal((done["planStatus"], done["progress"]), ("completed", 100), "the plan")
    assert_equal(done["nextStep"]["status"], "plan_complete", "the next step")


async def check_history(client, plan_id):
    page = await client.read(f"onward://plan/{plan_id}")
    assert_equal(PLAN["name"] in page, True, "the plan can be read")
    audit = json.loads(await client.read(f"onward://plan/{plan_id}/audit"))
    types = {event["eventType"] for event in audit["events"]}
    expected = {"branch_taken", "user_reviewed", "session_resumed", "plan_completed"}
    assert_equal(expected - types, set(), "missing events")
    prompt = await client.prompt("run_plan", {"planId": plan_id})
    assert_equal(plan_id in prompt, True, "the prompt contains the plan id")


async def check_texts(client):
    """Stored texts are linked, can be read, and are completed by their titles."""
    note = {"title": "Insulation figures", "content": "0.2 W/m2K"}
    stored, links = await client.links("store_research", note)
    assert_equal(links, [f"onward://artifact/{stored['artifactId']}"], "the link")
    text = json.loads(await client.read(links[0]))
    assert_equal(text["content"], note["content"], "the linked text")
    template = "onward://artifact/{artifactId}{?offset,maxChars}"
    found = await client.complete(template, "artifactId", "insulation fig")
    assert_equal(stored["artifactId"] in found, True, "the completion")


async def claim_first_of_two(client):
    """A plan of two steps, of which the first is claimed. Returns the plan's id and the claim."""
    steps = [
        {"stepType": "search", "instructions": "First"},
        {"stepType": "search", "instructions": "Second", "dependsOn": [1]},
    ]
    plan = {"name": "Two steps", "researchQuestion": "Which is first?", "steps": steps}
    plan_id = (await client.call("create_research_plan", plan))["planId"]
    step = await client.call("get_next_step", {"planId": plan_id})
    return plan_id, {key: step[key] for key in ("stepId", "claimToken")}


async def wait_for_step(client):
    plan_id, claim = await claim_first_of_two(client)
    waiting = client.call("get_next_step", {"planId": plan_id, "waitMs": 20_000})
    result = {**claim, "resultSummary": "done"}
    step, _ = await asyncio.gather(waiting, client.call("submit_step_result", result))
    assert_equal((step["status"], step["instructions"]), ("step_started", "Second"), "the awaited step")


async def review_as_task(client, decisions):
    """The call returns when the user has decided in the form of the task."""
    _, claim = await claim_first_of_two(client)
    decisions.append({"decision": "approve"})
    decided = await client.call("request_user_review", {**claim, "summary": "Is it the first?"})
    assert_equal((decided["decision"], decided["stepStatus"]), ("approve", "completed"), "the decision")
    assert_equal(client.tasks_followed, 2, "followed tasks")
