"""Asks a running `onward serve` about the Lee collection, with a static model beside it.

Each text's beginning is a question; the other 49 are ranked, and their worth is how alike people found
them. Run by `bench/quality`.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import wordllama
from safetensors.numpy import load_file
from tokenizers import Tokenizer

PATIENCE = 120


def model():
    """A server on this machine that embeds by averaging the table's rows, as the package itself does."""
    root = pathlib.Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(root / "tokenizers/l2_supercat_tokenizer_config.json"))
    table = load_file(str(root / "weights/l2_supercat_256.safetensors"))["embedding.weight"]
    table = table.astype(numpy.float32)

    def numbers(text):
        ids = tokenizer.encode(text, add_special_tokens=False).ids or [0]
        return table[ids].mean(axis=0).tolist()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            data = [{"index": i, "embedding": numbers(t)} for i, t in enumerate(asked["input"])]
            body = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def store(url, title, content):
    body = json.dumps({"title": title, "content": content}).encode()
    request = urllib.request.Request(f"{url}/api/v1/artifacts", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["artifactId"]


def ndcg(ranked, worth):
    gain = lambda values: sum(v / math.log2(place + 2) for place, v in enumerate(values[:10]))
    return gain([worth[text] for text in ranked]) / gain(sorted(worth.values(), reverse=True))


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("binary")
    flags.add_argument("data", type=pathlib.Path)
    flags.add_argument("--words", type=int, default=12)
    asked = flags.parse_args()
    texts = (asked.data / "lee.cor").read_text(encoding="latin-1").splitlines()
    rows = (asked.data / "similarities0-1.txt").read_text(encoding="utf-8").splitlines()
    # A triangle: each pair stands once.
    alike = [[float(cell) for cell in row.split()] for row in rows]
    worth_of = lambda one, other: max(alike[one][other], alike[other][one])
    environment = {
        **os.environ,
        "ONWARD_EMBEDDINGS_URL": model(),
        "ONWARD_EMBEDDINGS_MODEL": "wordllama-256",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [asked.binary, "--database", f"{folder}/onward.db", "serve", "--bind", "127.0.0.1:0"]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = re.search(r"http://\S+", server.stdout.readline()).group()
            ids = {store(url, f"Text {number}", text): number for number, text in enumerate(texts)}
            until = time.monotonic() + PATIENCE
            while not re.search(r'Waiting</dt><dd class="figures">0<', get(f"{url}/search")):
                if time.monotonic() > until:
                    sys.exit("not everything was embedded in time")
                time.sleep(0.2)
            report(url, ids, texts, worth_of, asked.words)
        finally:
            server.terminate()
            server.wait(timeout=30)


def report(url, ids, texts, worth_of, words):
    sums = {"words": 0.0, "meaning": 0.0, "fused": 0.0}
    for number, text in enumerate(texts):
        query = urllib.parse.quote(" ".join(text.split()[:words]))
        found = json.loads(get(f"{url}/api/v1/search?limit=50&query={query}"))
        if found["mode"] != "hybrid":
            sys.exit("the model did not take part")
        worth = {other: worth_of(number, other) for other in range(len(texts)) if other != number}
        results = [(ids[result["artifactId"]], result) for result in found["results"]]
        results = [(other, result) for other, result in results if other != number]
        for name, field in [("words", "keywordRank"), ("meaning", "semanticRank"), ("fused", None)]:
            ranked = results if field is None else sorted(
                (pair for pair in results if field in pair[1]), key=lambda pair: pair[1][field]
            )
            sums[name] += ndcg([other for other, _ in ranked], worth)
    print(f"{len(texts)} questions of {words} words, {len(texts) - 1} texts to rank: nDCG@10")
    for name, value in sums.items():
        print(f"  {name:<8} {value / len(texts):.3f}")


main()
