"""The plan through the official Python SDK of 2026-07-28: PyPI `mcp` 2.x, which also speaks the
versions before.

    mcp_2.py VERSION http URL
    mcp_2.py VERSION stdio COMMAND [ARGUMENT...]
"""

import asyncio
import sys
import warnings
from contextlib import asynccontextmanager

from mcp import Client as Session
from mcp import StdioServerParameters, types

import plan

PATIENCE = 20


def connection(version, kind, target):
    # `auto` asks the server what it speaks, as an agent would.
    mode = "legacy" if version < "2026" else "auto"
    if kind == "http":
        server = target[0]
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])

    @asynccontextmanager
    async def connect(person):
        updates = asyncio.Queue()

        async def form(_, params):
            plan.same(params.requested_schema["required"], ["decision"], "the form")
            decided = person.pop(0)
            if decided is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content=decided)

        async def heard(message):
            if isinstance(message, types.ResourceUpdatedNotification):
                updates.put_nowait(str(message.params.uri))

        async with Session(
            server,
            mode=mode,
            read_timeout_seconds=PATIENCE,
            elicitation_callback=form,
            message_handler=heard,
        ) as session:
            yield Client(session, updates)

    return connect


class Client:
    def __init__(self, session, updates):
        self.session, self.updates = session, updates
        self.version = session.protocol_version

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        texts = [block.text for block in result.content]
        return plan.answer(result.is_error, texts, result.structured_content)

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
        if self.version >= "2026":
            async with self.session.listen(resource_subscriptions=[uri]) as events:

                async def changed():
                    event = await asyncio.wait_for(anext(events), PATIENCE)
                    plan.same(str(event.uri), uri, "what has changed")

                yield changed
            return

        async def told():
            plan.same(await asyncio.wait_for(self.updates.get(), PATIENCE), uri, "what has changed")

        with warnings.catch_warnings():
            # The way of the versions before, which is what is tried here.
            warnings.simplefilter("ignore")
            await self.session.subscribe_resource(uri)
            yield told
            await self.session.unsubscribe_resource(uri)


version, kind, *target = sys.argv[1:]
asyncio.run(plan.go(connection(version, kind, target), version))
