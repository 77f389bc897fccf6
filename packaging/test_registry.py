"""An npm registry on a free loopback port, with the packed files of a directory. For tests.

Prints its address and serves until its standard input closes.
"""

import base64
import hashlib
import json
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

folder = Path(sys.argv[1])


def packument(name, base):
    """All versions of a package, as npm reads them."""
    versions = {}
    for path in sorted(folder.glob("*.tgz")):
        with tarfile.open(path) as archive:
            manifest = json.load(archive.extractfile("package/package.json"))
        if manifest["name"] != name:
            continue
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        dist = {"tarball": f"{base}/-/{path.name}", "integrity": f"sha512-{digest}"}
        versions[manifest["version"]] = manifest | {"dist": dist}
    latest = max(versions, key=lambda version: [int(part) for part in version.split(".")], default=None)
    return {"name": name, "dist-tags": {"latest": latest}, "versions": versions} if latest else None


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        base = f"http://{self.headers['Host']}"
        if self.path.startswith("/-/"):
            path = folder / self.path.removeprefix("/-/")
            found = path.read_bytes() if path.parent == folder and path.is_file() else None
        else:
            found = packument(self.path.removeprefix("/"), base)
            found = found and json.dumps(found).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(found or b"{}")))
        self.end_headers()
        self.wfile.write(found or b"{}")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
