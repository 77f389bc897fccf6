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
from mcp import MCPError, StdioServerParameters, types
from mcp.client.extension import ClientExtension, ResultClaim
from pydantic import TypeAdapter

import plan
from checks import assert_equal, parse_result
from features import TIMEOUT_SECONDS

JSON = TypeAdapter(dict[str, Any])


class CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    poll_interval_ms: int


class TaskRequest(types.Request[dict[str, Any], str]):
    """`tasks/get`, `tasks/update` or `tasks/cancel`."""

    name_param = "taskId"


class Tasks(ClientExtension):
    """Follows tasks until they have ended: the SDK has extensions, but not this one."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, reviewer):
        self.reviewer, self.followed = reviewer, 0

    def claims(self):
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.follow)]

    async def follow(self, created, context):
        self.followed += 1
        while True:
            state = await task_request(context.session, "tasks/get", created.task_id)
            if state["status"] == "completed":
                return types.CallToolResult.model_validate(state["result"])
            if state["status"] == "input_required":
                [(key, request)] = state["inputRequests"].items()
                answers = {key: await self.reviewer.answer(request["params"])}
                await task_request(context.session, "tasks/update", created.task_id, inputResponses=answers)
            else:
                assert_equal(state["status"], "working", "status of the task")
                await asyncio.sleep(created.poll_interval_ms / 10_000)


async def task_request(session, method, task_id, **params):
    request = TaskRequest(method=method, params={"taskId": task_id, **params})
    return await session.send_request(request, JSON)


def connection(version, kind, target):
    # `auto` negotiates the version, as an agent would.
    mode = "legacy" if version < "2026" else "auto"

    def server(arguments):
        if kind == "http":
            return target[0]
        return StdioServerParameters(command=target[0], args=[*target[1:], *arguments])

    @asynccontextmanager
    async def connect(reviewer, tasks=False, arguments=()):
        updates = asyncio.Queue()
        extension = Tasks(reviewer)

        async def answer(_, params):
            return types.ElicitResult(**await reviewer.answer(dump(params)))

        async def on_message(message):
            if isinstance(message, types.ResourceUpdatedNotification):
                updates.put_nowait(str(message.params.uri))
            if isinstance(message, types.ElicitCompleteNotification):
                reviewer.completed.append(message.params.elicitation_id)

        async with Session(
            server(arguments),
            mode=mode,
            read_timeout_seconds=TIMEOUT_SECONDS,
            elicitation_callback=answer,
            message_handler=on_message,
            extensions=[extension] if tasks else None,
        ) as session:
            yield Client(session, updates, extension)

    return connect


def dump(model):
    """With the names of the protocol."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Client:
    def __init__(self, session, updates, tasks):
        self.session, self.updates, self.tasks = session, updates, tasks
        self.version = session.protocol_version
        discovered = session.session.discover_result
        self.server = {
            **(dump(discovered) if discovered else {}),
            "serverInfo": dump(session.server_info),
            "capabilities": dump(session.server_capabilities),
        }

    @property
    def tasks_followed(self):
        return self.tasks.followed

    async def list(self, kind):
        lists = {
            "tools": self.session.list_tools,
            "prompts": self.session.list_prompts,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
        }
        return dump(await lists[kind]())

    async def result(self, name, arguments, meta=None):
        return parse_result(dump(await self.session.call_tool(name, arguments, meta=meta)))

    async def call(self, name, arguments, meta=None):
        return (await self.result(name, arguments, meta))[0]

    async def times_out(self, name, arguments):
        try:
            await self.session.call_tool(name, arguments, read_timeout_seconds=0.2)
        except MCPError as error:
            return error.code == types.REQUEST_TIMEOUT

    async def request(self, method, params):
        request = types.Request[dict[str, Any], str](method=method, params=params)
        return await self.session.session.send_request(request, JSON)

    async def start(self, name, arguments):
        """Returns the id of the task."""
        created = await self.session.session.call_tool(name, arguments, allow_claimed=True)
        return created.task_id

    async def task(self, task_id):
        return await task_request(self.session.session, "tasks/get", task_id)

    async def cancel(self, task_id):
        await task_request(self.session.session, "tasks/cancel", task_id)

    async def complete(self, template, name, value):
        reference = types.ResourceTemplateReference(uri=template)
        completed = await self.session.complete(reference, {"name": name, "value": value})
        return completed.completion.values

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    @asynccontextmanager
    async def watch(self, uri):
        if self.version >= "2026":
            async with self.session.listen(resource_subscriptions=[uri]) as events:

                async def wait_for_event():
                    event = await asyncio.wait_for(anext(events), TIMEOUT_SECONDS)
                    assert_equal(str(event.uri), uri, "updated resource")

                yield wait_for_event
            return

        async def wait_for_update():
            updated = await asyncio.wait_for(self.updates.get(), TIMEOUT_SECONDS)
            assert_equal(updated, uri, "updated resource")

        with warnings.catch_warnings():
            # The SDK warns that this method is deprecated; older protocol versions need it.
            warnings.simplefilter("ignore")
            await self.session.subscribe_resource(uri)
            yield wait_for_update
            await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
asyncio.run(plan.run(connection(version, kind, target), version, has_tasks=version >= "2026"))
