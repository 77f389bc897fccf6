"""A whole plan, as an agent and its person go through it, whichever client carries it.

`go` is handed a way to connect, and connects twice: what one session began, another one ends. A
connection has `version`, `tools`, `call`, `resources`, `read`, `prompts`, `prompt` and `watch`; the
forms that the server shows are answered from `person`, one answer after the other. The same story in
JavaScript is `plan.mjs`.
"""

import json

TOOLS = {
    "ping", "create_research_plan", "list_active_plans", "get_plan_status", "modify_plan",
    "list_plan_steps", "get_next_step", "submit_step_result", "report_step_progress",
    "request_user_review", "submit_user_decision", "get_step_context", "get_research_context",
    "log_skill_execution", "submit_feedback",
}  # fmt: skip
PROMPTS = {"run_plan", "resume_plan", "design_plan"}

PLAN = {
    "name": "Heat pumps in old houses",
    "researchQuestion": "Does a heat pump pay in a house of 1930?",
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


class Refused(Exception):
    """A result with `isError`: the refusal that its text holds."""

    def __init__(self, text):
        error = json.loads(text)["error"]
        super().__init__(f"{error['code']}: {error['message']}; {error['hint']}")
        self.code, self.details = error["code"], error.get("details")


def answer(is_error, texts, structured):
    """What a tool said. The structured content and the text must say the same."""
    if is_error:
        same(structured, None, "a refusal has no structured content")
        raise Refused(texts[0])
    same(json.loads(texts[0]), structured, "text and structured content")
    return structured


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


async def refused(asking, code):
    try:
        answered = await asking
    except Refused as refusal:
        same(refusal.code, code, "the refusal")
        return refusal
    raise AssertionError(f"expected `{code}`, was answered {answered!r}")


async def go(connect, version):
    person = []
    async with connect(person) as client:
        same(client.version, version, "the protocol's version")
        await look_around(client)
        plan = await client.call("create_research_plan", PLAN)
        plan = plan["planId"]
        token = await search(client, plan)
        await review(client, person, plan, token)
    async with connect(person) as client:
        await resume(client, plan)
        await look_back(client, plan)
    same(person, [], "answers that nobody asked for")


async def look_around(client):
    same(TOOLS - set(await client.tools()), set(), "tools that are missing")
    same(PROMPTS - set(await client.prompts()), set(), "prompts that are missing")
    same("onward://plans" in await client.resources(), True, "`onward://plans` is listed")
    pong = await client.call("ping", {})
    same(pong["server"]["name"], "onward", "who answers")
    nobody = {"planId": "00000000-0000-0000-0000-000000000000"}
    await refused(client.call("get_plan_status", nobody), "plan_not_found")
    misspelt = await refused(client.call("get_plan_status", {"planID": "x"}), "invalid_input")
    same("planID" in str(misspelt.details["issues"]), True, "a misspelt field is named")


async def search(client, plan):
    """The first step, whose result adds one; then that one. Hands back the claim of the next."""
    uri = f"onward://plan/{plan}"
    async with client.watch(uri) as changed:
        step = await client.call("get_next_step", {"planId": plan, "sessionId": "first"})
        same((step["status"], step["stepOrder"]), ("step_started", 1), "the first step")
        await changed()
    claim = {"stepId": step["stepId"], "claimToken": step["claimToken"]}
    await client.call("report_step_progress", {**claim, "note": "two of three", "percent": 66})
    result = {"resultSummary": "Two studies", "result": {"found": 2}, "confidence": 0.3}
    done = await client.call("submit_step_result", {**claim, **result, "claimNext": True})
    same(done["branchTaken"]["action"], "add_steps", "the branch")
    same(done["nextStep"]["instructions"], "Find a fourth", "the step that was added")
    again = await client.call("submit_step_result", {**claim, **result, "claimNext": True})
    same(again, done, "the same result once more")
    other = {**claim, **result, "resultSummary": "Something else"}
    late = await refused(client.call("submit_step_result", other), "illegal_transition")
    same("keptArtifactId" in late.details, True, "a refused result is kept")
    claim = {key: done["nextStep"][key] for key in ("stepId", "claimToken")}
    done = await client.call(
        "submit_step_result",
        {**claim, "resultSummary": "One more", "confidence": 0.9, "claimNext": True},
    )
    return {key: done["nextStep"][key] for key in ("stepId", "claimToken")}


async def review(client, person, plan, claim):
    """A person asks for more, then does not answer the form, and approves in words."""
    person.append({"decision": "modify", "feedback": "In euros, please"})
    asked = {**claim, "summary": "It pays after 14 years", "questions": ["Is that what you meant?"]}
    told = await client.call("request_user_review", asked)
    same((told["decision"], told["stepStatus"]), ("modify", "in_progress"), "the decision")
    step = await client.call("get_next_step", {"planId": plan})
    same(step["claimToken"], claim["claimToken"], "the claim after a decision")
    same(step["instructions"].endswith("In euros, please"), True, "feedback is in the instructions")
    person.append(None)
    told = await client.call("request_user_review", {**asked, "summary": "28,000 euros"})
    same((told["stepStatus"], told.get("decision")), ("awaiting_input", None), "a form declined")
    waits = await client.call("get_next_step", {"planId": plan})
    same(waits["status"], "awaiting_review", "the plan waits for a person")
    decided = await client.call(
        "submit_user_decision", {"stepId": claim["stepId"], "decision": "approve"}
    )
    same((decided["stepStatus"], decided["planStatus"]), ("completed", "executing"), "approval")


async def resume(client, plan):
    """Another session finds out where things stand, and ends it."""
    context = await client.call("get_research_context", {"planId": plan, "sessionId": "second"})
    done = [step["status"] for step in context["steps"]]
    same(done, ["completed", "completed", "completed", "pending"], "what another session did")
    step = await client.call(
        "get_next_step", {"planId": plan, "sessionId": "second", "includeStalled": True}
    )
    same(step["instructions"], "Write one page", "the last step")
    done = await client.call(
        "submit_step_result",
        {
            "stepId": step["stepId"],
            "claimToken": step["claimToken"],
            "resultSummary": "One page",
            "claimNext": True,
        },
    )
    same((done["planStatus"], done["progress"]), ("completed", 100), "the plan")
    same(done["nextStep"]["status"], "plan_complete", "what comes next")


async def look_back(client, plan):
    page = await client.read(f"onward://plan/{plan}")
    same(PLAN["name"] in page, True, "the plan can be read")
    audit = json.loads(await client.read(f"onward://plan/{plan}/audit"))
    kinds = {event["eventType"] for event in audit["events"]}
    expected = {"branch_taken", "user_reviewed", "session_resumed", "plan_completed"}
    same(expected - kinds, set(), "events that are missing")
    same(plan in await client.prompt("run_plan", {"planId": plan}), True, "the prompt names the plan")
