"""The user of a client, who decides reviews in the form that the client shows, or on the review page."""

import asyncio
import html
import json
import re
import urllib.parse
import urllib.request

from checks import assert_equal


class Reviewer:
    """Decides from the list `decisions`, in order. `None` declines."""

    def __init__(self):
        self.decisions = []
        # The properties of each form, or the URL of each page.
        self.forms, self.pages = [], []
        # The ids of the pages that the server reported as completed.
        self.completed = []

    async def answer(self, params):
        """The result of an elicitation."""
        decision = self.decisions.pop(0)
        if params.get("mode") == "url":
            self.pages.append(params["url"])
            if decision is None:
                return {"action": "decline"}
            # The client opens the page, and the user decides there.
            opened = asyncio.get_running_loop().run_in_executor(None, decide_on_page, params["url"], decision)
            # Prints an error.
            opened.add_done_callback(lambda opened: opened.result())
            return {"action": "accept"}
        schema = params["requestedSchema"]
        self.forms.append(schema["properties"])
        assert_equal(schema["required"], ["decision"], "required fields of the form")
        if decision is None:
            return {"action": "decline"}
        answers = decision.get("answers", {})
        content = {key: value for key, value in decision.items() if key != "answers"}
        content |= {f"field_{name}": value for name, value in answers.items()}
        return {"action": "accept", "content": content}


def decide_on_page(url, decision):
    """Opens a review page and submits its form."""
    with urllib.request.urlopen(url) as response:
        page = response.read().decode()
    [form] = re.findall(r'<form method="post" action="(/reviews/[^"]+/decide)"[^>]*>(.*?)</form>', page, re.DOTALL)
    action, inputs = form
    fields = [
        (name, html.unescape(value))
        for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', inputs)
    ]
    for name, value in decision.get("answers", {}).items():
        values = value if isinstance(value, list) else [value]
        texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
        fields += [(f"field-{name}", text) for text in texts]
    fields += [(name, value) for name, value in decision.items() if name != "answers"]
    body = urllib.parse.urlencode(fields).encode()
    urllib.request.urlopen(urllib.parse.urljoin(url, action), body).close()
