"""Runs the plan with the official Python SDK for 2026-07-28: PyPI `mcp` 2.x, which also supports older
versions.

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

TIMEOUT_SECONDS = 20


def connection(version, kind, target):
    # `auto` negotiates the version, as an agent would.
    mode = "legacy" if version < "2026" else "auto"
    if kind == "http":
        server = target[0]
    else:
        server = StdioServerParameters(command=target[0], args=target[1:])

    @asynccontextmanager
    async def connect(decisions):
        updates = asyncio.Queue()

        async def answer_form(_, params):
            plan.assert_equal(params.requested_schema["required"], ["decision"], "required fields of the form")
            decision = decisions.pop(0)
            if decision is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content=decision)

        async def on_message(message):
            if isinstance(message, types.ResourceUpdatedNotification):
                updates.put_nowait(str(message.params.uri))

        async with Session(
            server,
            mode=mode,
            read_timeout_seconds=TIMEOUT_SECONDS,
            elicitation_callback=answer_form,
            message_handler=on_message,
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
        return plan.parse_result(result.is_error, texts, result.structured_content)

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
asyncio.run(plan.run(connection(version, kind, target), version))
