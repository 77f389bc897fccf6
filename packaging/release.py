"""Steps of a release that do not compile: versions, changelog, SBOM, registry entry, checksums.

    release.py bump VERSION DATE       sets the version everywhere, and cuts the changelog
    release.py check                   fails if versions differ
    release.py notes                   prints the changes of the current version
    release.py sbom TARGET FILE        writes a CycloneDX SBOM of the program
    release.py server-json FOLDER      writes FOLDER/server.json with the MCP bundles in FOLDER
    release.py checksums FOLDER        writes FOLDER/SHA256SUMS
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from datetime import datetime, timezone
from pathlib import Path

from package import REPOSITORY, ROOT, epoch

SEMVER = r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?"
# Each file with a pattern of its versions.
PLACES = [
    ("Cargo.toml", r'(?m)^version = "VERSION"'),
    ("Cargo.toml", r'(?m)^onward-[a-z]+ = \{ path = "[^"]+", version = "VERSION" \}'),
    ("packaging/npm/package.json", r'"version": "VERSION"'),
    ("packaging/mcp/manifest.json", r'"version": "VERSION"'),
    ("packaging/mcp/server.json", r'"version": "VERSION"'),
    ("packaging/mcp/server.json", r'ghcr\.io/onward-dev/onward:VERSION"'),
    ("plugins/claude-code/.claude-plugin/plugin.json", r'"version": "VERSION"'),
    ("plugins/codex/.codex-plugin/plugin.json", r'"version": "VERSION"'),
    ("plugins/gemini/gemini-extension.json", r'"version": "VERSION"'),
    ("packaging/container/compose.yaml", r"ghcr\.io/onward-dev/onward:VERSION\b"),
    ("packaging/helm/onward/Chart.yaml", r"(?m)^(?:appV|v)ersion: VERSION$"),
]
UNRELEASED = re.compile(rf"(?m)^## ({SEMVER}) \(unreleased\)$")


def current():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def around(pattern, version):
    return pattern.replace("VERSION", version)


def found():
    """All versions, as (file, version)."""
    for name, pattern in PLACES:
        text = (ROOT / name).read_text()
        matches = re.findall(around(pattern, f"({SEMVER})"), text)
        if not matches:
            sys.exit(f"error: no version in {name}: {pattern}")
        for match in matches:
            yield name, match


def check():
    version = current()
    wrong = [f"{name} has {other}" for name, other in found() if other != version]
    if not re.search(rf"(?m)^## {re.escape(version)} \(", (ROOT / "CHANGELOG.md").read_text()):
        wrong.append("CHANGELOG.md has no section")
    server = json.loads((ROOT / "packaging/mcp/server.json").read_text())
    if len(server["description"]) > 100:
        wrong.append("the description in server.json has more than 100 characters")
    if wrong:
        sys.exit(f"error: the version is {version}, but: {'; '.join(wrong)}")
    print(f"version {version} everywhere")


def bump(version, date):
    if not re.fullmatch(SEMVER, version):
        sys.exit(f"error: `{version}` is not a version\nhint: use MAJOR.MINOR.PATCH")
    changelog = ROOT / "CHANGELOG.md"
    text = changelog.read_text()
    if not UNRELEASED.search(text):
        sys.exit("error: CHANGELOG.md has no section `## VERSION (unreleased)`\nhint: add one with the changes")
    changelog.write_text(UNRELEASED.sub(f"## {version} ({date})", text, count=1))
    for name, pattern in PLACES:
        path = ROOT / name
        before, after = around(pattern, "\0").removeprefix("(?m)").split("\0")
        text = re.sub(f"(?m)({before}){SEMVER}({after})", rf"\g<1>{version}\g<2>", path.read_text())
        path.write_text(text)


def notes():
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"(?ms)^## {re.escape(current())} \([^)]*\)\n(.*?)(?=^## |\Z)", text)
    print(section.group(1).strip() if section else "")


def sbom(target, file):
    """All packages in the program, from the lock file, without tests."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    metadata = json.loads(run.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock}

    def used(node):
        for dependency in nodes[node]["deps"]:
            if any(kind["kind"] != "dev" for kind in dependency["dep_kinds"]):
                yield dependency["pkg"]

    (root,) = [id for id, package in packages.items() if package["name"] == "onward"]
    reached, queue = {root}, [root]
    while queue:
        new = set(used(queue.pop())) - reached
        reached |= new
        queue += new

    def purl(id):
        return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"

    def component(id):
        package = packages[id]
        entry = {
            "type": "application" if id == root else "library",
            "bom-ref": purl(id),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(id),
        }
        if package.get("license"):
            # Older packages separate alternatives with a slash.
            entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        checksum = hashes.get((package["name"], package["version"]))
        if checksum:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return entry

    made = datetime.fromtimestamp(epoch(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    others = sorted(reached - {root}, key=purl)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": made, "component": component(root)},
        "components": [component(id) for id in others],
        "dependencies": [
            {"ref": purl(id), "dependsOn": sorted({purl(other) for other in used(id)})}
            for id in [root, *others]
        ],
    }
    Path(file).write_text(json.dumps(document, indent=2) + "\n")
    print(f"{file}: {len(others)} packages")


def server_json(folder):
    """The entry for the MCP registry, with the checksums of the bundles."""
    server = json.loads((ROOT / "packaging/mcp/server.json").read_text())
    for bundle in sorted(Path(folder).glob("*.mcpb")):
        server["packages"].append(
            {
                "registryType": "mcpb",
                "identifier": f"{REPOSITORY}/releases/download/v{current()}/{bundle.name}",
                "fileSha256": hashlib.sha256(bundle.read_bytes()).hexdigest(),
                "transport": {"type": "stdio"},
            }
        )
    (Path(folder) / "server.json").write_text(json.dumps(server, indent=2) + "\n")


def checksums(folder):
    lines = []
    for file in sorted(Path(folder).iterdir()):
        if file.is_file() and not file.name.startswith("SHA256SUMS"):
            lines.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n")
    (Path(folder) / "SHA256SUMS").write_text("".join(lines))
    print(f"SHA256SUMS: {len(lines)} files")


COMMANDS = {
    "bump": bump,
    "check": check,
    "notes": notes,
    "sbom": sbom,
    "server-json": server_json,
    "checksums": checksums,
}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
