"""Runs the plan with the official Python SDK for 2026-07-28: PyPI `mcp` 2.x, which also supports older
versions.

    mcp_2.py VERSION http URL
    mcp_2.py VERSION stdio COMMAND [ARGUMENT...]
"""

import asyncio
import sys
import warnings
from contextlib import asynccontextmanager
from typing import Any, Literal

from mcp import Client as Session
from mcp import StdioServerParameters, types
from mcp.client.extension import ClientExtension, ResultClaim

import plan

TIMEOUT_SECONDS = 20


class CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int | None = None


class TaskState(types.Result):
    task_id: str
    status: str
    result: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class GetTask(types.Request[dict[str, Any], Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: dict[str, Any]
    name_param = "taskId"


class UpdateTask(types.Request[dict[str, Any], Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    params: dict[str, Any]
    name_param = "taskId"


class Tasks(ClientExtension):
    """Follows tasks until they have ended: the SDK has extensions, but not this one."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, decisions):
        self.decisions, self.followed = decisions, 0

    def claims(self):
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.follow)]

    async def follow(self, created, context):
        self.followed += 1
        task = {"taskId": created.task_id}
        while True:
            state = await context.session.send_request(GetTask(params=task), TaskState)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            plan.assert_equal(state.status in ("working", "input_required"), True, state.status)
            if state.status == "input_required":
                plan.assert_equal(list(state.input_requests), ["review"], "input requests")
                answer = {"action": "accept", "content": self.decisions.pop(0)}
                update = UpdateTask(params={**task, "inputResponses": {"review": answer}})
                await context.session.send_request(update, types.EmptyResult)
            else:
                await asyncio.sleep(created.poll_interval_ms / 10_000)


def connection(version, kind, target):
    # `auto` negotiates the version, as an agent would.
    mode = "legacy" if version < "2026" else "auto"
    if kind == "http":
        server = target[0]
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])

    @asynccontextmanager
    async def connect(decisions, tasks=False):
        updates = asyncio.Queue()
        extension = Tasks(decisions)

        async def answer(_, params):
            decision = decisions.pop(0)
            if decision is None:
                return types.ElicitResult(action="decline")
            if params.mode == "url":
                # The client opens the page, and the user decides there.
                asyncio.get_running_loop().run_in_executor(None, plan.decide_on_page, params.url, decision)
                return types.ElicitResult(action="accept")
            plan.assert_equal(params.requested_schema["required"], ["decision"], "required fields of the form")
            return types.ElicitResult(action="accept", content=decision)

        async def on_message(message):
            if isinstance(message, types.ResourceUpdatedNotification):
                updates.put_nowait(str(message.params.uri))

        async with Session(
            server,
            mode=mode,
            read_timeout_seconds=TIMEOUT_SECONDS,
            elicitation_callback=answer,
            message_handler=on_message,
            extensions=[extension] if tasks else None,
        ) as session:
            yield Client(session, updates, extension)

    return connect


class Client:
    def __init__(self, session, updates, tasks):
        self.session, self.updates, self.tasks = session, updates, tasks
        self.version = session.protocol_version

    @property
    def tasks_followed(self):
        return self.tasks.followed

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        text = result.content[0].text
        return plan.parse_result(result.is_error, text, result.structured_content)

    async def links(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        links = [str(block.uri) for block in result.content if block.type == "resource_link"]
        return result.structured_content, links

    async def complete(self, template, name, value):
        reference = types.ResourceTemplateReference(uri=template)
        completed = await self.session.complete(reference, {"name": name, "value": value})
        return completed.completion.values

    async def resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    @asynccontextmanager
    async def watch(self, uri):
        if self.version >= "2026":
            async with self.session.listen(resource_subscriptions=[uri]) as events:

                async def wait_for_event():
                    event = await asyncio.wait_for(anext(events), TIMEOUT_SECONDS)
                    plan.assert_equal(str(event.uri), uri, "updated resource")

                yield wait_for_event
            return

        async def wait_for_update():
            updated = await asyncio.wait_for(self.updates.get(), TIMEOUT_SECONDS)
            plan.assert_equal(updated, uri, "updated resource")

        with warnings.catch_warnings():
            # The SDK warns that this method is deprecated; older protocol versions need it.
            warnings.simplefilter("ignore")
            await self.session.subscribe_resource(uri)
            yield wait_for_update
            await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
asyncio.run(plan.run(connection(version, kind, target), version, supports_tasks=version >= "2026"))
