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

TIMEOUT_SECONDS = 20


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
    async def connect(decisions):
        updates = asyncio.Queue()

        async def answer(_, params):
            decision = decisions.pop(0)
            if decision is None:
                return types.ElicitResult(action="decline")
            if params.mode == "url":
                # The client opens the page, and the user decides there.
                asyncio.get_running_loop().run_in_executor(None, plan.decide_on_page, params.url, decision)
                return types.ElicitResult(action="accept")
            plan.assert_equal(params.requestedSchema["required"], ["decision"], "required fields of the form")
            return types.ElicitResult(action="accept", content=decision)

        async def on_message(message):
            if isinstance(message, types.ServerNotification):
                if isinstance(message.root, types.ResourceUpdatedNotification):
                    updates.put_nowait(str(message.root.params.uri))

        async with streams(kind, target) as (read, write):
            timeout = timedelta(seconds=TIMEOUT_SECONDS)
            session = ClientSession(
                read,
                write,
                timeout,
                elicitation_callback=answer,
                message_handler=on_message,
            )
            async with session:
                negotiated = await session.initialize()
                yield Client(session, negotiated.protocolVersion, updates)

    return connect


class Client:
    def __init__(self, session, version, updates):
        self.session, self.version, self.updates = session, version, updates

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        text = result.content[0].text
        return plan.parse_result(result.isError, text, result.structuredContent)

    async def links(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        links = [str(block.uri) for block in result.content if block.type == "resource_link"]
        return result.structuredContent, links

    async def complete(self, template, name, value):
        reference = types.ResourceTemplateReference(type="ref/resource", uri=template)
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
        async def wait_for_update():
            updated = await asyncio.wait_for(self.updates.get(), TIMEOUT_SECONDS)
            plan.assert_equal(updated, uri, "updated resource")

        await self.session.subscribe_resource(uri)
        yield wait_for_update
        await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
asyncio.run(plan.run(connection(kind, target), version))
