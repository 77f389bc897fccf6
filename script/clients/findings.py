"""Prints every check of a conformance run that did not pass, with the reason.

    findings.py DIRECTORY

Exits with 1 if a check failed or passed with a warning. Skipped checks are listed but do not count.
"""

import json
import sys
from pathlib import Path

failed = False
for file in sorted(Path(sys.argv[1]).glob("*/checks.json")):
    for check in json.loads(file.read_text()):
        if check["status"] in ("SUCCESS", "INFO"):
            continue
        failed = failed or check["status"] != "SKIPPED"
        reason = check.get("errorMessage") or ""
        print(f"{check['status']} {check['id']}: {reason} {json.dumps(check.get('details'))}")
sys.exit(failed)
