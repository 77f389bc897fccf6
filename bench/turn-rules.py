#!/usr/bin/env python3
"""Loop rules of other agents, on labelled turns, for comparison with `onward transcript judge`.

    bench/turn-rules.py TURNS.jsonl[.gz] LABELS.jsonl

Each rule is written from its published description and thresholds; none of their code is used. A rule sees
the calls of a turn in order and reports the first step at which it fires. Verdicts are counted as in
docs/turns.md: within the stuck steps plus or minus two is a detection, elsewhere a miss and a false alarm.
"""
import gzip
import json
import sys

TOLERANCE = 2


def read(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def calls(turn):
    """(step, call, output, failed) of every call."""
    for index, step in enumerate(turn["steps"]):
        for call in step["calls"]:
            key = call["tool"] + json.dumps(call["input"], sort_keys=True)
            yield index, key, call.get("output") or "", call["ok"] is False


def identical(times):
    """The same call several times in a row."""
    def rule(turn):
        last, count = None, 0
        for step, key, _, _ in calls(turn):
            count = count + 1 if key == last else 1
            last = key
            if count >= times:
                return step
        return None
    return rule


def cycles(longest, times):
    """A sequence of calls several times in a row."""
    def rule(turn):
        history = []
        for step, key, _, _ in calls(turn):
            history.append(key)
            for length in range(1, longest + 1):
                tail = history[-length * times:]
                if len(tail) == length * times and tail == tail[:length] * times:
                    return step
        return None
    return rule


def window(size, times):
    """The same step with the same outputs several times in the last steps."""
    def rule(turn):
        history = []
        for index, step in enumerate(turn["steps"]):
            history.append(json.dumps([[c["tool"], c["input"], c.get("output")] for c in step["calls"]], sort_keys=True))
            recent = history[-size:]
            if len(recent) == size and max(map(recent.count, recent)) > times:
                return index
        return None
    return rule


def openhands(turn):
    """Four equal calls with equal outputs, three equal failures, or two calls in turn six times."""
    history = []
    for step, key, output, failed in calls(turn):
        history.append((key, output, failed))
        last = history[-4:]
        if len(last) == 4 and len(set(last)) == 1:
            return step
        errors = history[-3:]
        if len(errors) == 3 and all(failed for _, _, failed in errors) and len({key for key, _, _ in errors}) == 1:
            return step
        turns = history[-6:]
        if len(turns) == 6 and turns[0] != turns[1] and turns == turns[:2] * 3:
            return step
    return None


def stella(turn):
    """Three equal calls with equal outputs, a cycle of 2 to 4 three times, or one tool with one output six times."""
    history = []
    for step, key, output, _ in calls(turn):
        history.append((key, output, key.split("{")[0].split('"')[0]))
        pairs = [entry[:2] for entry in history]
        for length in (1, 2, 3, 4):
            tail = pairs[-length * 3:]
            if len(tail) == length * 3 and tail == tail[:length] * 3:
                return step
        same = [entry[1:] for entry in history[-6:]]
        if len(same) == 6 and len(set(same)) == 1:
            return step
    return None


RULES = [
    ("three identical calls (opencode, cline's warning)", identical(3)),
    ("four identical calls (Roo)", identical(4)),
    ("five identical calls (qwen-code, cline)", identical(5)),
    ("twelve identical calls (kimi)", identical(12)),
    ("cycles of 1 to 5 calls, five times (gemini-cli)", cycles(5, 5)),
    ("any cycle, three times (forgecode)", cycles(12, 3)),
    ("same step more than 5 times in 10 (crush)", window(10, 5)),
    ("equal calls and outputs (OpenHands)", openhands),
    ("equal calls and outputs, cycles, stagnation (stella)", stella),
]


def score(turns, labels, rule):
    caught = false_alarms = stuck = healthy = disturbed = 0
    for turn in turns:
        label = labels.get(turn["id"])
        if label is None or label["label"] == "unclear":
            continue
        at = rule(turn)
        if label["label"] == "healthy":
            healthy += 1
            disturbed += at is not None
            continue
        stuck += 1
        if at is not None:
            inside = label["stuck_from"] - TOLERANCE <= at <= label["stuck_to"] + TOLERANCE
            caught += inside
            false_alarms += not inside
    fired = caught + false_alarms + disturbed
    return caught / fired if fired else 0.0, caught / stuck if stuck else 0.0, 1000 * disturbed / healthy if healthy else 0.0


def main():
    if len(sys.argv) != 3:
        sys.exit("error: missing arguments\nhint: run `bench/turn-rules.py TURNS LABELS`")
    turns = read(sys.argv[1])
    labels = {label["id"]: label for label in read(sys.argv[2])}
    print("| rule | precision | recall | healthy turns disturbed per 1,000 |\n|---|---|---|---|")
    for name, rule in RULES:
        precision, recall, disturbed = score(turns, labels, rule)
        print(f"| {name} | {precision:.3f} | {recall:.3f} | {disturbed:.0f} |")


if __name__ == "__main__":
    main()
