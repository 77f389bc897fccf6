"""The APIs that the server calls: a model for `extract_data` and a collector of traces.

Prints the base URL. `GET /traces/ID` returns 200 if a span of that trace, of a tool call, was received.
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

spans = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("/traces"):
            spans.append(body)
            return self.respond(200, {})
        count = sum(moon in body.decode() for moon in ("Io", "Europa"))
        message = {"role": "assistant", "content": json.dumps({"moons": count})}
        self.respond(200, {"model": "mock", "choices": [{"message": message, "finish_reason": "stop"}]})

    def do_GET(self):
        trace = bytes.fromhex(self.path.removeprefix("/traces/"))
        found = any(trace in span and b"tools/call" in span for span in spans)
        self.respond(200 if found else 404, {})

    def respond(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
