"""What the conformance suite found: every check of a run that was not passed, and why not.

    findings.py FOLDER

Fails where one failed, or passed with a warning. What does not apply to this server is listed.
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
        why = check.get("errorMessage") or ""
        print(f"{check['status']} {check['id']}: {why} {json.dumps(check.get('details'))}")
sys.exit(failed)
