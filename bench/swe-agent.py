#!/usr/bin/env python3
"""Converts SWE-agent `.traj` files to the `turns` format of `onward transcript judge`.

Usage: bench/swe-agent.py FILE... > turns.jsonl

Each file is one run, which is one turn; each trajectory entry is a step with one command. Entries
have no error flag: an observation with a failure marker failed, SWE-agent's own commands with other
output succeeded, and the success of the rest is unknown.
"""

import json
import sys

# Texts that occur only in a failed observation.
FAILURE_MARKERS = (
    "Traceback (most recent call last)",
    "command not found",
    "Your proposed edit has introduced new syntax error(s)",
    "No such file or directory",
    "EXECUTION TIMED OUT",
    "BUILD FAILURE",
    "No file open. Use the open command first",
    "No replacement was performed",
    "is a directory. You can only",
    "syntax error near unexpected token",
    "COMMAND FAILED TO EXECUTE",
    "Permission denied",
    "Error: ",
)
READ_COMMANDS = (
    "open", "goto", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file", "filemap",
)
WRITE_COMMANDS = ("edit", "create", "insert", "append")


def is_read(action, tool):
    return tool in READ_COMMANDS or action.startswith("str_replace_editor view")


def is_write(action, tool):
    return tool in WRITE_COMMANDS or (tool == "str_replace_editor" and not is_read(action, tool))


def succeeded(action, tool, output):
    """True, False, or None if unknown."""
    start = output.lstrip()
    own = is_read(action, tool) or is_write(action, tool)
    # A page of a file is a success, regardless of its text.
    if own and start.startswith("[File: "):
        return True
    not_found = start.startswith(("File ", "Directory ")) and " not found" in start
    failed = any(marker in output for marker in FAILURE_MARKERS)
    if not_found or start.startswith("Usage: ") or failed:
        return False
    return True if own and start else None


def turn(path):
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    last_edit, steps = None, []
    for entry in run["trajectory"]:
        action, output = entry.get("action") or "", entry.get("observation") or ""
        tool = (action.split() or [""])[0]
        ok = succeeded(action, tool, output)
        call = {"tool": tool, "input": action.rstrip(), "ok": ok, "output": output}
        changed = False if is_read(action, tool) else None
        if is_write(action, tool):
            # An edit that repeats the previous one with the same output changes nothing.
            changed = ok and (action, output) != last_edit
            last_edit = (action, output) if ok else last_edit
        steps.append({"calls": [call], "changed": changed})
    return {"id": path, "source": "swe-agent", "steps": steps}


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("error: missing arguments\nhint: run `bench/swe-agent.py FILE...`")
    for name in sys.argv[1:]:
        print(json.dumps(turn(name)))
