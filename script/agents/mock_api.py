"""Mock of four model APIs: requests the scripted tool calls.

The APIs are Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini.

Usage: mock_api.py PORT SCRIPT LOG. SCRIPT is JSON: a list of responses, each a list of calls
`{"name", "input"}`, or `{"calls", "tokens"}` with the reported size of the request. A response
without calls, and every response after the last one, is a text. In a call, `$PLAN_FILE` is the path
of the plan file that the request names; `$planId`, `$stepId` and `$claimToken` are the last values of
these fields in the request. LOG receives the requests.
"""

import http.server
import json
import re
import sys
import time

PORT, SCRIPT, LOG = int(sys.argv[1]), json.load(open(sys.argv[2])), open(sys.argv[3], "w")
responses = iter(SCRIPT)


def named(events):
    return "".join(f"event: {name}\ndata: {json.dumps(data | {'type': name})}\n\n" for name, data in events)


def unnamed(events):
    return "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)


def anthropic(calls, number, tokens):
    start = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "mock",
             "content": [], "stop_reason": None, "usage": {"input_tokens": tokens, "output_tokens": 1}}
    yield "message_start", {"message": start}
    for index, call in enumerate(calls or [None]):
        if call is None:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": "done"}
        else:
            block = {"type": "tool_use", "id": f"toolu_{number}_{index}", "name": call["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call["input"])}
        yield "content_block_start", {"index": index, "content_block": block}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    reason = "tool_use" if calls else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
    yield "message_stop", {}


def responses_api(calls, number, tokens):
    yield "response.created", {"response": {"id": f"r{number}"}}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    items = [{"type": "function_call", "name": call["name"], "arguments": json.dumps(call["input"]),
              "call_id": f"call_{number}_{index}"} for index, call in enumerate(calls)]
    for item, call in zip(items, calls):
        # Codex groups the tools of an MCP server in a namespace.
        item |= {key: call[key] for key in ("namespace",) if key in call}
    for index, item in enumerate(items or [text]):
        yield "response.output_item.done", {"output_index": index, "item": item | {"id": f"i{number}_{index}"}}
    usage = {"input_tokens": tokens, "input_tokens_details": None, "output_tokens": 1,
             "output_tokens_details": None, "total_tokens": tokens + 1}
    yield "response.completed", {"response": {"id": f"r{number}", "usage": usage}}


def chat(calls, number, tokens):
    tools = [{"index": index, "id": f"call_{number}_{index}", "type": "function",
              "function": {"name": call["name"], "arguments": json.dumps(call["input"])}}
             for index, call in enumerate(calls)]
    message = {"role": "assistant"} | ({"tool_calls": tools} if tools else {"content": "done"})
    end = "tool_calls" if tools else "stop"
    usage = {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}
    head = {"id": f"c{number}", "object": "chat.completion.chunk", "created": 0, "model": "mock"}
    yield head | {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield head | {"choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage}
    yield "[DONE]"


def chat_message(calls, number, tokens):
    first = next(chat(calls, number, tokens))
    choice = {"index": 0, "message": first["choices"][0]["delta"], "finish_reason": "stop"}
    return first | {"object": "chat.completion", "choices": [choice]}


def gemini(calls, tokens):
    parts = [{"functionCall": {"name": call["name"], "args": call["input"]}} for call in calls]
    candidate = {"content": {"role": "model", "parts": parts or [{"text": "done"}]},
                 "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 1, "totalTokenCount": tokens + 1}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock"}


def with_values(calls, body):
    request, text = json.dumps(body), json.dumps(calls)
    found = re.search(r"/[^\s\"`]*/plans/[^\s\"`]*\.md", request)
    text = text.replace("$PLAN_FILE", found[0] if found else "")
    for field in ("planId", "stepId", "claimToken"):
        values = re.findall(field + r"[\\\": ]+([\w-]{16,})", request)
        text = text.replace(f"${field}", values[-1] if values else "")
    return json.loads(text)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.reply(200, b"")

    def do_GET(self):
        self.reply(404, b"")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        LOG.write(json.dumps(body) + "\n")
        LOG.flush()
        # As a model does. Kimi Code does not wait for the hook after a call.
        time.sleep(1)
        # Side requests, such as titles, have no tools.
        response = next(responses, []) if body.get("tools") else []
        if isinstance(response, list):
            response = {"calls": response}
        calls, tokens = with_values(response["calls"], body), response.get("tokens", 1)
        number, path = id(body), self.path.split("?")[0]
        if path.endswith(":streamGenerateContent"):
            return self.stream(unnamed([gemini(calls, tokens)]))
        if path.endswith(":generateContent"):
            return self.json(gemini(calls, tokens))
        if path.endswith(":countTokens"):
            return self.json({"totalTokens": 1})
        if path.endswith("/chat/completions") and not body.get("stream"):
            return self.json(chat_message(calls, number, tokens))
        if path.endswith("/chat/completions"):
            return self.stream(unnamed(chat(calls, number, tokens)))
        api = responses_api if path.endswith("/responses") else anthropic
        self.stream(named(api(calls, number, tokens)))

    def stream(self, text):
        self.reply(200, text.encode(), "text/event-stream")

    def json(self, value):
        self.reply(200, json.dumps(value).encode(), "application/json")

    def reply(self, status, body, content_type="text/plain"):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
