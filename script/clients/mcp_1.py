"""The plan through the official Python SDK of 2025-11-25: PyPI `mcp` 1.x.

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

PATIENCE = 20


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
    async def connect(person):
        updates = asyncio.Queue()

        async def form(_, params):
            plan.same(params.requestedSchema["required"], ["decision"], "the form")
            decided = person.pop(0)
            if decided is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content=decided)

        async def heard(message):
            if isinstance(message, types.ServerNotification):
                if isinstance(message.root, types.ResourceUpdatedNotification):
                    updates.put_nowait(str(message.root.params.uri))

        async with streams(kind, target) as (read, write):
            patience = timedelta(seconds=PATIENCE)
            session = ClientSession(
                read, write, patience, elicitation_callback=form, message_handler=heard
            )
            async with session:
                agreed = await session.initialize()
                yield Client(session, agreed.protocolVersion, updates)

    return connect


class Client:
    def __init__(self, session, version, updates):
        self.session, self.version, self.updates = session, version, updates

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        texts = [block.text for block in result.content]
        return plan.answer(result.isError, texts, result.structuredContent)

    async def resources(self):
        return [str(one.uri) for one in (await self.session.list_resources()).resources]

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    @asynccontextmanager
    async def watch(self, uri):
        async def changed():
            told = await asyncio.wait_for(self.updates.get(), PATIENCE)
            plan.same(told, uri, "what has changed")

        await self.session.subscribe_resource(uri)
        yield changed
        await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
asyncio.run(plan.go(connection(kind, target), version))
