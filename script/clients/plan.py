"""A complete plan from the perspective of an agent and its reviewer, independent of the client library.

`run` is given a function that connects, and connects several times: the second session completes the plan
of the first. A connection has `version`, `server`, `list`, `call`, `result`, `times_out`, `request`,
`complete`, `read`, `prompt` and `watch`; with `tasks=True` also `start`, `task` and `cancel`. Lists and
results have the names of the protocol. The JavaScript version is `plan.mjs`.
"""

import json

import features
from checks import assert_equal, expect_error
from reviewer import Reviewer

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


async def run(connect, version, has_tasks=False, sends_cancellations=True):
    reviewer = Reviewer()
    async with connect(reviewer) as client:
        assert_equal(client.version, version, "protocol version")
        await check_capabilities(client)
        await features.check_skill(client)
        plan_id = await create(client)
        await features.check_descriptions(client, plan_id)
        claim = await search(client, plan_id)
        await review(client, reviewer, plan_id, claim)
    async with connect(reviewer) as client:
        await resume(client, plan_id)
        await check_history(client, plan_id)
        await features.check_texts(client)
        await features.check_waiting(client)
        await features.check_decision(client, reviewer)
        if sends_cancellations:
            await features.check_cancellation(client)
        # These SDKs always declare URL mode.
        await features.check_fields(client, reviewer, on_page=bool(features.SERVER))
        await features.check_trace(client)
    if has_tasks:
        await features.check_tasks(connect, reviewer)
    if features.SERVER:
        features.check_discovery()
    else:
        async with connect(reviewer, arguments=["--tools", "plan"]) as client:
            await features.check_aliases(client)
    assert_equal(reviewer.decisions, [], "unused decisions")


async def check_capabilities(client):
    for kind, key, expected in [
        ("tools", "name", TOOLS),
        ("prompts", "name", PROMPTS),
        ("resources", "uri", {"onward://plans"}),
    ]:
        listed = {entry[key] for entry in (await client.list(kind))[kind]}
        assert_equal(expected - listed, set(), f"missing {kind}")
    pong = await client.call("ping", {})
    assert_equal(pong["server"]["name"], "onward", "server name")
    missing = {"planId": "00000000-0000-0000-0000-000000000000"}
    await expect_error(client.call("get_plan_status", missing), "plan_not_found")
    misspelt = await expect_error(client.call("get_plan_status", {"planID": "x"}), "invalid_input")
    assert_equal("planID" in str(misspelt.details["issues"]), True, "the error names the misspelt field")


async def create(client):
    created, links = await client.result("create_research_plan", PLAN)
    assert_equal(links, [f"onward://plan/{created['planId']}"], "the link of the plan")
    return created["planId"]


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


async def review(client, reviewer, plan_id, claim):
    """The reviewer requests a change, then declines the form and approves through the agent."""
    reviewer.decisions.append({"decision": "modify", "feedback": "In euros, please"})
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
    reviewer.decisions.append(None)
    declined, links = await client.result("request_user_review", {**request, "summary": "28,000 euros"})
    # A server without a dashboard has no review page.
    page = [declined["url"]] if "url" in declined else []
    assert_equal(links, [f"onward://plan/{plan_id}", *page], "the links of the review")
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
