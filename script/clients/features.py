"""Features of the protocol, one function each, independent of the client library.

The JavaScript version is `features.mjs`. Connections are described in `plan.py`.
"""

import asyncio
import hashlib
import json
import os
import secrets
import time
import urllib.error
import urllib.request
from pathlib import Path

from checks import assert_equal

TIMEOUT_SECONDS = 20
# Set by `run`, for HTTP only: the server, and the collector of its traces.
SERVER, COLLECTOR = os.environ.get("SERVER"), os.environ.get("COLLECTOR")
ICON = "data:image/svg+xml;base64,"
HOUR_MS = 3_600_000
# Time-to-live and scope of each list.
CACHING = {
    "tools": (HOUR_MS, "public"),
    "prompts": (HOUR_MS, "public"),
    "resourceTemplates": (HOUR_MS, "public"),
    "resources": (0, "private"),
}
# The words that agents search for.
WORDS = ["plan", "task", "todo", "resume", "review"]
SKILLS = "io.modelcontextprotocol/skills"
TASKS = "io.modelcontextprotocol/tasks"
ALIASES = {
    "create_research_plan": "create_plan",
    "get_research_context": "get_plan_context",
    "store_research_output": "store_plan_output",
}

# Typed questions, the property of the form for each, the user's answers, and the stored answers.
FIELDS = json.loads(Path(__file__).with_name("fields.json").read_text())


async def until(condition, description):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert_equal(time.monotonic() < deadline, True, description)
        await asyncio.sleep(0.02)


async def check_descriptions(client, plan_id):
    """Icons, titles, annotations, sizes and cache hints."""
    info, capabilities = client.server["serverInfo"], client.server["capabilities"]
    assert_equal(info["icons"][0]["src"].startswith(ICON), True, "icon of the server")
    for key in ("title", "description", "websiteUrl"):
        assert_equal(bool(info.get(key)), True, f"`{key}` of the server")
    assert_equal("logging" in capabilities, False, "logging is not declared")
    is_stateless = client.version >= "2026"
    assert_equal(TASKS in capabilities["extensions"], is_stateless, "tasks are declared")
    if is_stateless:
        caching = client.server["ttlMs"], client.server["cacheScope"]
        assert_equal(caching, (HOUR_MS, "public"), "caching of `server/discover`")
    for kind, caching in CACHING.items():
        listed = await client.list(kind)
        for entry in listed[kind]:
            assert_equal(entry["icons"][0]["src"].startswith(ICON), True, f"icon of {entry}")
            assert_equal(bool(entry.get("title")), True, f"title of {entry}")
        if is_stateless:
            assert_equal((listed["ttlMs"], listed["cacheScope"]), caching, f"caching of {kind}")
    titles = " ".join(tool["title"].lower() for tool in (await client.list("tools"))["tools"])
    assert_equal([word for word in WORDS if word not in titles], [], "words missing in titles")
    resources = {resource["uri"]: resource for resource in listed["resources"]}
    for resource in resources.values():
        annotations = resource["annotations"]
        assert_equal(annotations["audience"], ["user", "assistant"], "audience")
        assert_equal(0 < annotations["priority"] <= 1, True, f"priority of {resource}")
    plan = resources[f"onward://plan/{plan_id}"]
    assert_equal("lastModified" in plan["annotations"] and plan["size"] > 0, True, f"age and size of {plan}")
    profile = resources["onward://user/profile"]
    assert_equal(profile["size"], len((await client.read(profile["uri"])).encode()), "size of the profile")


async def check_skill(client):
    """The skill is listed, can be read, and has the listed digest."""
    assert_equal(client.server["capabilities"]["extensions"][SKILLS], {}, "the extension")
    [skill] = (await client.request("skills/list", {}))["skills"]
    found = await client.request("skills/get", {"uri": skill["uri"]})
    assert_equal(found["skill"], skill, "one skill")
    text = (await client.read(skill["uri"])).encode()
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    files = [{"uri": skill["uri"], "digest": digest, "size": len(text)}]
    assert_equal(skill["resources"], files, "files of the skill")


async def check_texts(client):
    """Stored texts are linked, can be read, and are completed by their titles."""
    note = {"title": "Insulation figures", "content": "0.2 W/m2K"}
    stored, links = await client.result("store_research", note)
    assert_equal(links, [f"onward://artifact/{stored['artifactId']}"], "the link")
    text = json.loads(await client.read(links[0]))
    assert_equal(text["content"], note["content"], "the linked text")
    template = "onward://artifact/{artifactId}{?offset,maxChars}"
    found = await client.complete(template, "artifactId", "insulation fig")
    assert_equal(stored["artifactId"] in found, True, "the completion")


async def check_aliases(client):
    """The tool set `plan` has names without "research"."""
    names = {tool["name"] for tool in (await client.list("tools"))["tools"]}
    assert_equal(names & set(ALIASES), set(), "names of the contract")
    assert_equal(set(ALIASES.values()) - names, set(), "missing aliases")
    steps = [{"stepType": "search", "instructions": "Look"}]
    plan = {"name": "Alias", "researchQuestion": "Which name?", "steps": steps}
    created = await client.call("create_plan", plan)
    context = await client.call("get_plan_context", {"planId": created["planId"]})
    assert_equal([step["status"] for step in context["steps"]], ["pending"], "steps")


async def claim_first_of_two(client):
    """A plan of two steps, of which the first is claimed. Returns the plan's id and the claim."""
    steps = [
        {"stepType": "search", "instructions": "First", "labels": ["first"]},
        {"stepType": "search", "instructions": "Second", "dependsOn": [1]},
    ]
    plan = {"name": "Two steps", "researchQuestion": "Which is first?", "steps": steps}
    plan_id = (await client.call("create_research_plan", plan))["planId"]
    step = await client.call("get_next_step", {"planId": plan_id})
    return plan_id, {key: step[key] for key in ("stepId", "claimToken")}


def assert_second(step):
    assert_equal((step["status"], step.get("instructions")), ("step_started", "Second"), "the second step")


async def check_waiting(client):
    """A wait returns the step that becomes ready, or the reason when the time is up."""
    plan_id, claim = await claim_first_of_two(client)
    reason = await client.call("get_next_step", {"planId": plan_id, "sessionId": "waiter", "waitMs": 1})
    assert_equal(reason["status"], "no_pending_steps", "the reason")
    waiting = client.call("get_next_step", {"planId": plan_id, "sessionId": "waiter", "waitMs": TIMEOUT_SECONDS * 1_000})
    result = {**claim, "resultSummary": "done"}
    step, _ = await asyncio.gather(waiting, client.call("submit_step_result", result))
    assert_second(step)


async def check_decision(client, reviewer):
    """The decision on a review ends a wait."""
    plan_id, claim = await claim_first_of_two(client)
    reviewer.decisions.append(None)
    await client.call("request_user_review", {**claim, "summary": "Is it the first?"})
    waiting = client.call("get_next_step", {"planId": plan_id, "sessionId": "waiter", "waitMs": TIMEOUT_SECONDS * 1_000})
    approval = {"stepId": claim["stepId"], "decision": "approve"}
    step, _ = await asyncio.gather(waiting, client.call("submit_user_decision", approval))
    assert_second(step)


async def check_cancellation(client):
    """A wait that the client has cancelled claims no step."""
    plan_id, claim = await claim_first_of_two(client)
    streams = open_streams()
    wait = {"planId": plan_id, "sessionId": "waiter", "waitMs": 60_000}
    assert_equal(await client.times_out("get_next_step", wait), True, "the call times out")
    # Over HTTP, a client of 2026-07-28 cancels by closing the connection.
    await until(lambda: open_streams() == streams, "the wait has ended")
    await client.call("submit_step_result", {**claim, "resultSummary": "done"})
    assert_second(await client.call("get_next_step", {"planId": plan_id}))


def open_streams():
    """The open streams of the HTTP server, `None` over stdio."""
    if not SERVER:
        return None
    with urllib.request.urlopen(f"{SERVER}/metrics") as response:
        lines = response.read().decode().splitlines()
    [count] = [line for line in lines if line.startswith("onward_open_streams ")]
    return count


async def check_fields(client, reviewer, on_page=False):
    """Typed questions are in the form or on the page, and the answers are stored with the review."""
    plan_id, claim = await claim_first_of_two(client)
    reviewer.decisions.append({"decision": "approve", "answers": FIELDS["answers"]})
    reviewer.forms, reviewer.pages = [], []
    review = {**claim, "summary": "Which pump?", "fields": FIELDS["fields"]}
    decided = await client.call("request_user_review", review)
    assert_equal((decided["decision"], decided["stepStatus"]), ("approve", "completed"), "the decision")
    for form in reviewer.forms:
        typed = {name: field for name, field in form.items() if name.startswith("field_")}
        assert_equal(typed, FIELDS["properties"], "fields of the form")
        assert_equal("default" in form["decision"], False, "the decision has no default")
        values = [option["const"] for option in form["decision"]["oneOf"]]
        assert_equal(values, ["approve", "modify", "skip", "reject"], "decisions")
    assert_equal((len(reviewer.forms), len(reviewer.pages)), (not on_page, on_page), "forms and pages")
    for page in reviewer.pages:
        # 2026-07-28 has no such notification.
        if client.version < "2026":
            await until(lambda: page.rpartition("/")[2] in reviewer.completed, "the page is completed")
    step = await client.call("get_next_step", {"planId": plan_id})
    context = await client.call("get_step_context", {"stepId": step["stepId"]})
    answers = context["priorResults"][0]["result"]["review"]["answers"]
    assert_equal(answers, FIELDS["storedAnswers"], "the stored answers")


async def check_trace(client):
    """The span of a call has the trace of the client. Only `onward serve` sends traces."""
    if not COLLECTOR:
        return
    trace = secrets.token_hex(16)
    await client.call("ping", {}, meta={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    await until(lambda: is_collected(trace), "the span is sent")


def is_collected(trace):
    try:
        urllib.request.urlopen(f"{COLLECTOR}/traces/{trace}").close()
        return True
    except urllib.error.HTTPError as error:
        assert_equal(error.code, 404, "status of the collector")
        return False


def check_discovery():
    """The catalog leads to the server card, and the card to the endpoint. The SDKs have no function for it."""

    def get(url):
        with urllib.request.urlopen(url) as response:
            return json.load(response)

    catalog = get(f"{SERVER}/.well-known/ai-catalog.json")
    card = get(catalog["entries"][0]["url"])
    assert_equal([remote["url"] for remote in card["remotes"]], [f"{SERVER}/mcp"], "endpoints of the card")


async def check_tasks(connect, reviewer):
    """Calls as tasks. A task survives its connection, and over stdio its server."""
    async with connect(reviewer, tasks=True) as client:
        await check_waiting(client)
        await check_fields(client, reviewer)
        source = {"schema": {"type": "object", "required": ["moons"]}, "sourceText": "Io and Europa"}
        extracted = await client.call("extract_data", source)
        assert_equal(extracted["data"], {"moons": 2}, "the extraction")
        # One wait does not become a task if the submission arrives before it.
        assert client.tasks_followed in (3, 4), "followed tasks"
        plan_id, claim = await claim_first_of_two(client)
        # The label keeps the step of the closed connection from this session.
        wait = {"planId": plan_id, "sessionId": "waiter", "labels": [], "waitMs": 60_000}
        cancelled = await client.start("get_next_step", wait)
        await client.cancel(cancelled)
        kept = await client.start("get_next_step", wait)
    async with connect(reviewer, tasks=True) as client:
        assert_equal((await client.task(cancelled))["status"], "cancelled", "the cancelled task")
        assert_equal((await client.task(kept))["status"], "working", "the task of the first connection")
        await client.call("submit_step_result", {**claim, "resultSummary": "done"})
        ended = await client.task(kept)
        assert_equal(ended["status"], "completed", "the task after the step is ready")
        assert_second(ended["result"]["structuredContent"])
        assert_equal((await client.task(cancelled))["status"], "cancelled", "the outcome is final")
