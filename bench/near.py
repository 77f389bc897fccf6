"""Nearest-neighbour search in PostgreSQL with pgvector, with and without an index. Run by `bench/near`.

A vector is the sum of a topic's direction, a text's direction and noise: 25 texts per topic, 20 chunks per
text. As in real embeddings, the dimensions differ in variance and their mean is not exactly zero. A query
is a text's direction with separate noise.
"""

import argparse
import os
import time

# The database runs on the same CPUs as this program.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
import psycopg

# Number of candidates that a search re-ranks.
CANDIDATES = 1_000
NEAREST = 10
CHUNKS_PER_TEXT = 20
TEXTS_PER_TOPIC = 25
INSERTED_ROWS = 1_000

WHERE = "tenant_id = 'bench' AND model = 'm' AND length(sign) = {width}"
SCAN = (
    "SELECT ordinal FROM chunk_signs WHERE " + WHERE + " ORDER BY bit_count(sign # '{sign}'::bit varying), "
    "source_id, ordinal LIMIT {among}"
)
BY_INDEX = (
    "SELECT ordinal FROM chunk_signs WHERE " + WHERE + " ORDER BY sign::bit({width}) <~> "
    "'{sign}'::bit({width}) LIMIT {among}"
)
INDEX = (
    "CREATE INDEX CONCURRENTLY near ON chunk_signs USING hnsw ((sign::bit({width})) bit_hamming_ops) "
    "WITH (ef_construction = 128) WHERE " + WHERE
)


def quantize(vectors):
    """Quantizes vectors to int8, as they are stored."""
    largest = numpy.abs(vectors).max(axis=1, keepdims=True)
    return numpy.rint(vectors / largest * 127).astype(numpy.int8)


def sign(vector):
    return "".join("1" if part > 0 else "0" for part in vector.tolist())


class Collection:
    def __init__(self, chunks, width, questions):
        rng = numpy.random.default_rng(7)
        texts = max(1, chunks // CHUNKS_PER_TEXT)

        def noise(rows):
            return rng.standard_normal((rows, width), dtype=numpy.float32)

        topics = noise(max(1, texts // TEXTS_PER_TOPIC))
        spread = (0.5 + rng.random(width)).astype(numpy.float32)
        mean = 0.15 * noise(1)
        self.vectors = numpy.empty((texts * CHUNKS_PER_TEXT, width), dtype=numpy.int8)
        queries = []
        batch = 500
        for first in range(0, texts, batch):
            rows = min(batch, texts - first)
            directions = 0.7 * topics[rng.integers(0, len(topics), rows)] + 0.5 * noise(rows)
            batch_vectors = numpy.repeat(directions, CHUNKS_PER_TEXT, axis=0)
            batch_vectors += 0.6 * noise(len(batch_vectors))
            begin = first * CHUNKS_PER_TEXT
            self.vectors[begin : begin + len(batch_vectors)] = quantize(batch_vectors * spread + mean)
            queries.append((directions + 0.7 * noise(rows)) * spread + mean)
        queries = numpy.concatenate(queries)
        self.questions = quantize(queries[rng.permutation(len(queries))[:questions]])

    def nearest(self, question, among=None):
        rows = numpy.arange(len(self.vectors)) if among is None else numpy.sort(numpy.array(among))
        best = []
        for batch in numpy.array_split(rows, max(1, len(rows) // 50_000)):
            numbers = self.vectors[batch].astype(numpy.float32)
            similarity = numbers @ question.astype(numpy.float32) / numpy.linalg.norm(numbers, axis=1)
            best.extend(zip(similarity.tolist(), batch.tolist()))
        best.sort(reverse=True)
        return {row for _, row in best[:NEAREST]}


def run_queries(database, collection, truth, text, width):
    durations, hits = [], 0
    for question, nearest in zip(collection.questions, truth):
        statement = text.format(width=width, sign=sign(question), among=CANDIDATES)
        began = time.perf_counter()
        rows = [row for (row,) in database.execute(statement).fetchall()]
        durations.append((time.perf_counter() - began) * 1_000)
        hits += len(collection.nearest(question, rows) & nearest)
    recall = hits / (NEAREST * len(truth))
    return f"{numpy.median(durations):9.1f} {numpy.percentile(durations, 95):9.1f} {recall:10.1%}"


def insert(database, vectors, begin):
    began = time.perf_counter()
    with database.cursor().copy("COPY chunk_signs FROM STDIN") as copy:
        for index, vector in enumerate(vectors, begin):
            text = f"00000000-0000-4000-8000-{index // CHUNKS_PER_TEXT:012x}"
            copy.write_row(("bench", text, index, "m", sign(vector)))
    return time.perf_counter() - began


def measure(database, chunks, width, questions):
    database.execute(
        "DROP TABLE IF EXISTS chunk_signs; CREATE TABLE chunk_signs (tenant_id text NOT NULL, source_id uuid "
        "NOT NULL, ordinal bigint NOT NULL, model text NOT NULL, sign bit varying NOT NULL, "
        "PRIMARY KEY (tenant_id, source_id, ordinal)); "
        "CREATE INDEX chunk_signs_by_model ON chunk_signs (tenant_id, model)"
    )
    collection = Collection(chunks, width, questions)
    vectors = collection.vectors
    truth = [collection.nearest(question) for question in collection.questions]
    insert(database, vectors, 0)
    more = vectors[:INSERTED_ROWS]
    without = insert(database, more, len(vectors))
    database.execute(f"DELETE FROM chunk_signs WHERE ordinal >= {len(vectors)}")
    database.execute("VACUUM ANALYZE chunk_signs")
    head = f"{len(vectors):8} {width:5}"
    print(head, "scan   ", run_queries(database, collection, truth, SCAN, width), flush=True)
    began = time.perf_counter()
    database.execute(INDEX.format(width=width))
    built = time.perf_counter() - began
    size = database.execute("SELECT pg_relation_size('near') / 1048576").fetchone()[0]
    database.execute("SET enable_sort = off")
    found = run_queries(database, collection, truth, BY_INDEX, width)
    database.execute("SET enable_sort = on")
    with_index = insert(database, more, len(vectors))
    print(
        head, "index  ", found, f"{built:8.1f} {size:6}",
        f"{without / INSERTED_ROWS * 1e6:8.0f} {with_index / INSERTED_ROWS * 1e6:8.0f}", flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, action="append")
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--questions", type=int, default=60)
    args = parser.parse_args()
    with psycopg.connect(os.environ["ONWARD_BENCH_POSTGRES"], autocommit=True) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector; CREATE SCHEMA onward_bench_near")
        try:
            # The session settings that Onward uses for queries and for building indexes.
            database.execute(
                "SET search_path = onward_bench_near, public; SET enable_seqscan = off; SET jit = off; "
                f"SET hnsw.ef_search = {CANDIDATES}; SET hnsw.iterative_scan = strict_order; "
                "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0"
            )
            print("  chunks width method     p50 ms    p95 ms   recall  build s     MB  insert us: without, with index")
            for chunks in args.chunks or [10_000, 20_000, 100_000]:
                for width in args.width or [384, 768]:
                    measure(database, chunks, width, args.questions)
        finally:
            database.execute("DROP SCHEMA onward_bench_near CASCADE")


main()
