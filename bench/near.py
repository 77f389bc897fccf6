"""Finds the nearest signs in a PostgreSQL with pgvector, with an index and without. Run by `bench/near`.

A vector is a topic's direction, plus a text's, plus its own: 25 texts to a topic, 20 chunks to a text. Some
numbers spread more than others, and their middle is not quite zero, as those of models. A question is a
text's direction with noise of its own.
"""

import argparse
import os
import time

# The database is measured beside this program, on the same processors.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
import psycopg

# As many as a search compares number by number.
AMONG = 1_000
NEAREST = 10
CHUNKS_OF_TEXT = 20
TEXTS_OF_TOPIC = 25
INSERTED = 1_000

WHERE = "tenant_id = 'bench' AND model = 'm' AND length(sign) = {width}"
LOOKING = (
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


def small(vectors):
    """Whole numbers of eight bits, as they are kept."""
    most = numpy.abs(vectors).max(axis=1, keepdims=True)
    return numpy.rint(vectors / most * 127).astype(numpy.int8)


def sign(vector):
    return "".join("1" if part > 0 else "0" for part in vector.tolist())


class Collection:
    def __init__(self, chunks, width, questions):
        dice = numpy.random.default_rng(7)
        texts = max(1, chunks // CHUNKS_OF_TEXT)

        def noise(rows):
            return dice.standard_normal((rows, width), dtype=numpy.float32)

        topics = noise(max(1, texts // TEXTS_OF_TOPIC))
        spread = (0.5 + dice.random(width)).astype(numpy.float32)
        middle = 0.15 * noise(1)
        self.vectors = numpy.empty((texts * CHUNKS_OF_TEXT, width), dtype=numpy.int8)
        asked = []
        piece = 500
        for first in range(0, texts, piece):
            rows = min(piece, texts - first)
            of_texts = 0.7 * topics[dice.integers(0, len(topics), rows)] + 0.5 * noise(rows)
            own = numpy.repeat(of_texts, CHUNKS_OF_TEXT, axis=0)
            own += 0.6 * noise(len(own))
            begin = first * CHUNKS_OF_TEXT
            self.vectors[begin : begin + len(own)] = small(own * spread + middle)
            asked.append((of_texts + 0.7 * noise(rows)) * spread + middle)
        asked = numpy.concatenate(asked)
        self.questions = small(asked[dice.permutation(len(asked))[:questions]])

    def nearest(self, question, among=None):
        rows = numpy.arange(len(self.vectors)) if among is None else numpy.sort(numpy.array(among))
        best = []
        for piece in numpy.array_split(rows, max(1, len(rows) // 50_000)):
            numbers = self.vectors[piece].astype(numpy.float32)
            likeness = numbers @ question.astype(numpy.float32) / numpy.linalg.norm(numbers, axis=1)
            best.extend(zip(likeness.tolist(), piece.tolist()))
        best.sort(reverse=True)
        return {row for _, row in best[:NEAREST]}


def ask(database, collection, truth, text, width):
    took, right = [], 0
    for question, nearest in zip(collection.questions, truth):
        statement = text.format(width=width, sign=sign(question), among=AMONG)
        began = time.perf_counter()
        rows = [row for (row,) in database.execute(statement).fetchall()]
        took.append((time.perf_counter() - began) * 1_000)
        right += len(collection.nearest(question, rows) & nearest)
    part = right / (NEAREST * len(truth))
    return f"{numpy.median(took):9.1f} {numpy.percentile(took, 95):9.1f} {part:10.1%}"


def insert(database, vectors, begin):
    began = time.perf_counter()
    with database.cursor().copy("COPY chunk_signs FROM STDIN") as copy:
        for place, vector in enumerate(vectors, begin):
            text = f"00000000-0000-4000-8000-{place // CHUNKS_OF_TEXT:012x}"
            copy.write_row(("bench", text, place, "m", sign(vector)))
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
    more = vectors[:INSERTED]
    without = insert(database, more, len(vectors))
    database.execute(f"DELETE FROM chunk_signs WHERE ordinal >= {len(vectors)}")
    database.execute("VACUUM ANALYZE chunk_signs")
    head = f"{len(vectors):8} {width:5}"
    print(head, "looking", ask(database, collection, truth, LOOKING, width), flush=True)
    began = time.perf_counter()
    database.execute(INDEX.format(width=width))
    built = time.perf_counter() - began
    size = database.execute("SELECT pg_relation_size('near') / 1048576").fetchone()[0]
    database.execute("SET enable_sort = off")
    found = ask(database, collection, truth, BY_INDEX, width)
    database.execute("SET enable_sort = on")
    with_index = insert(database, more, len(vectors))
    print(
        head, "index  ", found, f"{built:8.1f} {size:6}",
        f"{without / INSERTED * 1e6:8.0f} {with_index / INSERTED * 1e6:8.0f}", flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, action="append")
    parser.add_argument("--width", type=int, action="append")
    parser.add_argument("--questions", type=int, default=60)
    asked = parser.parse_args()
    with psycopg.connect(os.environ["ONWARD_BENCH_POSTGRES"], autocommit=True) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector; CREATE SCHEMA onward_bench_near")
        try:
            # As Onward's connections are set up, and as it builds.
            database.execute(
                "SET search_path = onward_bench_near, public; SET enable_seqscan = off; SET jit = off; "
                f"SET hnsw.ef_search = {AMONG}; SET hnsw.iterative_scan = strict_order; "
                "SET maintenance_work_mem = '256MB'; SET max_parallel_maintenance_workers = 0"
            )
            print("  chunks width way        p50 ms    p95 ms  the ten  build s     MB  insert, with it (us)")
            for chunks in asked.chunks or [10_000, 20_000, 100_000]:
                for width in asked.width or [384, 768]:
                    measure(database, chunks, width, asked.questions)
        finally:
            database.execute("DROP SCHEMA onward_bench_near CASCADE")


main()
