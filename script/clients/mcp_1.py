"""Runs the plan with the official Python SDK for 2025-11-25: PyPI `mcp` 1.x.

    mcp_1.py VERSION http URL
    mcp_1.py VERSION stdio COMMAND [ARGUMENT...]
"""

import asyncio
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import plan
from checks import assert_equal, parse_result
from features import TIMEOUT_SECONDS


@asynccontextmanager
async def streams(kind, target):
    if kind == "http":
        async with streamable_http_client(target[0]) as (read, write, _):
            yield read, write
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])
        async with stdio_client(server) as (read, write):
            yield read, write


def connection(kind, target):
    @asynccontextmanager
    async def connect(reviewer, arguments=()):
        updates = asyncio.Queue()

        async def answer(_, params):
            return types.ElicitResult(**await reviewer.answer(dump(params)))

        async def on_message(message):
            if isinstance(message, types.ServerNotification):
                if isinstance(message.root, types.ResourceUpdatedNotification):
                    updates.put_nowait(str(message.root.params.uri))
                if isinstance(message.root, types.ElicitCompleteNotification):
                    reviewer.completed.append(message.root.params.elicitationId)

        async with streams(kind, [*target, *arguments]) as (read, write):
            timeout = timedelta(seconds=TIMEOUT_SECONDS)
            session = ClientSession(
                read,
                write,
                timeout,
                elicitation_callback=answer,
                message_handler=on_message,
            )
            async with session:
                yield Client(session, dump(await session.initialize()), updates)

    return connect


def dump(model):
    """With the names of the protocol."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Client:
    def __init__(self, session, server, updates):
        self.session, self.server, self.updates = session, server, updates
        self.version = server["protocolVersion"]

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

    async def request(self, method, params):
        request = types.Request[dict, str](method=method, params=params)
        return dump(await self.session.send_request(request, types.Result))

    async def complete(self, template, name, value):
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
        completed = await self.session.complete(reference, {"name": name, "value": value})
        return completed.completion.values

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    @asynccontextmanager
    async def watch(self, uri):
        async def wait_for_update():
            updated = await asyncio.wait_for(self.updates.get(), TIMEOUT_SECONDS)
            assert_equal(updated, uri, "updated resource")

        await self.session.subscribe_resource(uri)
        yield wait_for_update
        await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
# This SDK does not send `notifications/cancelled`.
asyncio.run(plan.run(connection(kind, target), version, sends_cancellations=False))
