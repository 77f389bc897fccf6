"""Assertions about results and errors of tools."""

import json


class ToolError(Exception):
    """The error in a result with `isError`."""

    def __init__(self, text):
        error = json.loads(text)["error"]
        super().__init__(f"{error['code']}: {error['message']}; {error['hint']}")
        self.code, self.details = error["code"], error.get("details")


def parse_result(result):
    """The structured content of a tool result, which must equal its text, and the URIs of its links."""
    text, *links = result["content"]
    if result.get("isError"):
        assert_equal(result.get("structuredContent"), None, "an error has no structured content")
        raise ToolError(text["text"])
    assert_equal(json.loads(text["text"]), result["structuredContent"], "text and structured content")
    assert_equal({link["type"] for link in links} - {"resource_link"}, set(), "types of the other blocks")
    return result["structuredContent"], [link["uri"] for link in links]


def assert_equal(found, expected, description):
    if found != expected:
        raise AssertionError(f"{description}: expected {expected!r}, found {found!r}")


async def expect_error(call, code):
    try:
        result = await call
    except ToolError as error:
        assert_equal(error.code, code, "error code")
        return error
    raise AssertionError(f"expected `{code}`, got {result!r}")
