"""Assembles packages from a built binary: archive, npm, wheel, MCP bundle and Debian package.

Nothing is compiled and nothing is downloaded. The same binary gives the same bytes: entries are
sorted, and their times come from SOURCE_DATE_EPOCH (default: the last commit).

    package.py --binary target/dist/onward --target x86_64-unknown-linux-gnu --out target/packages
    package.py --npm-main --out target/packages
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import icon

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
CRATE = tomllib.loads((ROOT / "crates/onward/Cargo.toml").read_text())["package"]
SUMMARY = CRATE["description"]
REPOSITORY = WORKSPACE["repository"]
LICENCES = ["LICENSE-APACHE", "LICENSE-MIT"]


@dataclass(frozen=True)
class Target:
    """Names of a platform in the package formats."""

    os: str
    cpu: str
    wheel: str
    debian: str | None = None

    @property
    def npm(self):
        return f"{self.os}-{self.cpu}"

    @property
    def program(self):
        return "onward.exe" if self.os == "win32" else "onward"


TARGETS = {
    "x86_64-unknown-linux-gnu": Target("linux", "x64", "x86_64", "amd64"),
    "aarch64-unknown-linux-gnu": Target("linux", "arm64", "aarch64", "arm64"),
    "x86_64-apple-darwin": Target("darwin", "x64", "macosx_10_12_x86_64"),
    "aarch64-apple-darwin": Target("darwin", "arm64", "macosx_11_0_arm64"),
    "x86_64-pc-windows-msvc": Target("win32", "x64", "win_amd64"),
}
# The package of each target; the main package depends on all of them.
NPM_PLATFORMS = [f"onward-{target.npm}" for target in TARGETS.values()]


def epoch():
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        given = subprocess.run(git, capture_output=True, text=True, check=True).stdout
    # A zip archive has no earlier times.
    return max(int(given), 315_532_800)


@dataclass
class Entry:
    path: str
    data: bytes
    mode: int = 0o644


def tar(entries, directories=False):
    """An uncompressed tar archive, with the directories of its entries if requested."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        made = set()
        for entry in sorted(entries, key=lambda entry: entry.path):
            parents = list(reversed(Path(entry.path).parents)) if directories else []
            for parent in parents:
                name = "./" if str(parent) == "." else f"./{parent}/"
                if name in made:
                    continue
                made.add(name)
                info = tarfile.TarInfo(name)
                info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, epoch()
                info.uname = info.gname = "root"
                archive.addfile(info)
            info = tarfile.TarInfo(("./" if directories else "") + entry.path)
            info.size, info.mode, info.mtime = len(entry.data), entry.mode, epoch()
            info.uname = info.gname = "root"
            archive.addfile(info, io.BytesIO(entry.data))
    return out.getvalue()


def compress(data, level):
    return gzip.compress(data, compresslevel=level, mtime=0)


def zipped(entries, level):
    out = io.BytesIO()
    date = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for entry in entries:
            info = zipfile.ZipInfo(entry.path, date)
            info.external_attr = (stat.S_IFREG | entry.mode) << 16
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, entry.data)
    return out.getvalue()


def text_files():
    return [Entry(name, (ROOT / name).read_bytes()) for name in [*LICENCES, "README.md"]]


def glibc(binary):
    """The oldest glibc that the binary runs on: the newest symbol version it refers to."""
    found = {(int(a), int(b)) for a, b in re.findall(rb"GLIBC_(\d+)\.(\d+)", binary)}
    return max(found, default=None)


class Package:
    """The binary of one target, and what the packages contain besides it."""

    def __init__(self, binary, target, version, pages_from, level):
        self.binary = Path(binary).read_bytes()
        self.triple, self.target = target, TARGETS[target]
        self.version, self.level = version, level
        self.pages, self.completions = generated(pages_from or binary)

    def program(self, directory):
        return Entry(directory + self.target.program, self.binary, 0o755)

    def archive(self):
        name = f"onward-{self.version}-{self.triple}"
        entries = [self.program(""), *text_files()]
        entries += [Entry(f"man/{page}", data) for page, data in self.pages.items()]
        entries += [Entry(f"completions/{path}", data) for path, data in self.completions.items()]
        entries = [Entry(f"{name}/{entry.path}", entry.data, entry.mode) for entry in entries]
        if self.target.os == "win32":
            return {f"{name}.zip": zipped(entries, self.level)}
        return {f"{name}.tar.gz": compress(tar(entries), self.level)}

    def npm(self):
        name = f"onward-{self.target.npm}"
        manifest = {
            "name": name,
            "version": self.version,
            "description": f"Binary of onward for {self.target.npm}",
            "license": WORKSPACE["license"],
            "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
            "os": [self.target.os],
            "cpu": [self.target.cpu],
            "files": ["bin"],
            # Package managers must keep it as a file: a process cannot be started from an archive.
            "preferUnplugged": True,
        }
        if self.target.os == "linux":
            manifest["libc"] = ["glibc"]
        readme = f"Binary of [onward]({REPOSITORY}) for {self.target.npm}. Install `onward` instead.\n"
        entries = [self.program("bin/"), Entry("README.md", readme.encode())]
        entries += [Entry(licence, (ROOT / licence).read_bytes()) for licence in LICENCES]
        return {f"{name}-{self.version}.tgz": npm_archive(manifest, entries, self.level)}

    def wheel(self):
        tag = self.target.wheel
        if self.target.os == "linux":
            major, minor = glibc(self.binary) or (2, 17)
            tag = f"manylinux_{major}_{max(minor, 17)}_{tag}"
        name, info = f"onward-{self.version}", f"onward-{self.version}.dist-info"
        head = [
            "Metadata-Version: 2.4",
            "Name: onward",
            f"Version: {self.version}",
            f"Summary: {SUMMARY}",
            f"License-Expression: {WORKSPACE['license']}",
            *[f"License-File: {licence}" for licence in LICENCES],
            f"Keywords: {','.join(WORKSPACE['keywords'])}",
            f"Project-URL: Repository, {REPOSITORY}",
            f"Project-URL: Changelog, {REPOSITORY}/blob/main/CHANGELOG.md",
            "Requires-Python: >=3.8",
            "Description-Content-Type: text/markdown",
        ]
        readme = (HERE / "python/README.md").read_text()
        wheel = f"Wheel-Version: 1.0\nGenerator: onward\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
        entries = [
            self.program(f"{name}.data/scripts/"),
            Entry(f"{info}/METADATA", ("\n".join(head) + "\n\n" + readme).encode()),
            Entry(f"{info}/WHEEL", wheel.encode()),
        ]
        for licence in LICENCES:
            entries.append(Entry(f"{info}/licenses/{licence}", (ROOT / licence).read_bytes()))
        record = ""
        for entry in entries:
            digest = base64.urlsafe_b64encode(hashlib.sha256(entry.data).digest())
            record += f"{entry.path},sha256={digest.decode().rstrip('=')},{len(entry.data)}\n"
        record += f"{info}/RECORD,,\n"
        entries.append(Entry(f"{info}/RECORD", record.encode()))
        return {f"{name}-py3-none-{tag}.whl": zipped(entries, self.level)}

    def mcpb(self):
        manifest = json.loads((HERE / "mcp/manifest.json").read_text())
        program = f"server/{self.target.program}"
        manifest["version"] = self.version
        manifest["server"]["entry_point"] = program
        manifest["server"]["mcp_config"]["command"] = "${__dirname}/" + program
        manifest["compatibility"]["platforms"] = [self.target.os]
        entries = [
            Entry("manifest.json", (json.dumps(manifest, indent=2) + "\n").encode()),
            Entry("icon.png", icon.png(512 if self.level else 64)),
            self.program("server/"),
        ]
        entries += [Entry(licence, (ROOT / licence).read_bytes()) for licence in LICENCES]
        return {f"onward-{self.version}-{self.target.npm}.mcpb": zipped(entries, self.level)}

    def debian(self):
        if self.target.debian is None:
            return {}
        folder = HERE / "debian"
        doc = "usr/share/doc/onward"
        history = f"onward ({self.debian_version()}) stable; urgency=medium\n\n"
        history += f"  * See {REPOSITORY}/blob/main/CHANGELOG.md\n\n"
        history += f" -- Onward <onward@users.noreply.github.com>  {formatdate(epoch())}\n"
        data = [
            self.program("usr/bin/"),
            Entry("usr/lib/systemd/system/onward.service", (folder / "onward.service").read_bytes()),
            Entry("etc/onward/config.toml", (folder / "config.toml").read_bytes()),
            Entry(f"{doc}/copyright", (folder / "copyright").read_bytes()),
            Entry(f"{doc}/changelog.gz", compress(history.encode(), 9)),
        ]
        for page, text in self.pages.items():
            data.append(Entry(f"usr/share/man/man1/{page}.gz", compress(text, 9)))
        shells = {
            "onward.bash": "usr/share/bash-completion/completions/onward",
            "_onward": "usr/share/zsh/vendor-completions/_onward",
            "onward.fish": "usr/share/fish/vendor_completions.d/onward.fish",
            "_onward.ps1": "usr/share/powershell/completions/_onward.ps1",
        }
        for name, path in shells.items():
            data.append(Entry(path, self.completions[name]))
        major, minor = glibc(self.binary) or (2, 17)
        fields = {
            "Package": "onward",
            "Version": self.debian_version(),
            "Architecture": self.target.debian,
            "Maintainer": "Onward <onward@users.noreply.github.com>",
            "Installed-Size": str(sum(len(entry.data) for entry in data) // 1024),
            "Depends": f"libc6 (>= {major}.{minor}), libgcc-s1",
            "Recommends": "ca-certificates",
            "Section": "utils",
            "Priority": "optional",
            "Homepage": REPOSITORY,
            "Description": (folder / "description").read_text().rstrip(),
        }
        sums = "".join(
            f"{hashlib.md5(entry.data).hexdigest()}  {entry.path}\n"
            for entry in sorted(data, key=lambda entry: entry.path)
        )
        control = [
            Entry("control", "".join(f"{key}: {value}\n" for key, value in fields.items()).encode()),
            Entry("conffiles", b"/etc/onward/config.toml\n"),
            Entry("md5sums", sums.encode()),
        ]
        for script in ["postinst", "prerm", "postrm"]:
            control.append(Entry(script, (folder / script).read_bytes(), 0o755))
        members = [
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", compress(tar(control, directories=True), 9)),
            ("data.tar.gz", compress(tar(data, directories=True), self.level)),
        ]
        package = b"!<arch>\n"
        for name, content in members:
            package += f"{name:<16}{epoch():<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
            package += content + b"\n" * (len(content) % 2)
        return {f"onward_{self.debian_version()}_{self.target.debian}.deb": package}

    def debian_version(self):
        # `~` sorts before the end, so that a release replaces its candidates.
        return self.version.replace("-", "~", 1)


def npm_archive(manifest, entries, level):
    entries = [*entries, Entry("package.json", (json.dumps(manifest, indent=2) + "\n").encode())]
    entries = [Entry(f"package/{entry.path}", entry.data, entry.mode) for entry in entries]
    return compress(tar(entries), level)


def npm_main(version):
    """The package `onward`: a program that starts the binary of the platform's package."""
    manifest = json.loads((HERE / "npm/package.json").read_text())
    manifest["version"] = version
    manifest["optionalDependencies"] = {name: version for name in NPM_PLATFORMS}
    entries = [
        Entry("bin/onward.js", (HERE / "npm/onward.js").read_bytes(), 0o755),
        Entry("README.md", (HERE / "npm/README.md").read_bytes()),
    ]
    entries += [Entry(licence, (ROOT / licence).read_bytes()) for licence in LICENCES]
    return {f"onward-{version}.tgz": npm_archive(manifest, entries, 9)}


def generated(program):
    """Man pages and completions, which the program prints."""
    shells = {"bash": "onward.bash", "zsh": "_onward", "fish": "onward.fish", "powershell": "_onward.ps1"}
    program = str(Path(program).resolve())
    completions = {}
    for shell, name in shells.items():
        run = subprocess.run([program, "completions", shell], capture_output=True, check=True)
        completions[name] = run.stdout
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--quiet", "man", folder], check=True)
        pages = {page.name: page.read_bytes() for page in sorted(Path(folder).iterdir())}
    return pages, completions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--version", default=WORKSPACE["version"])
    parser.add_argument("--npm-main", action="store_true", help="only the main npm package")
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--pages-from", type=Path, help="a binary that runs on this machine")
    parser.add_argument("--only", nargs="+", help="kinds of packages; default: all")
    parser.add_argument("--fast", action="store_true", help="do not compress, for tests")
    args = parser.parse_args()
    if args.npm_main:
        files = npm_main(args.version)
    elif args.binary and args.target:
        level = 0 if args.fast else 9
        package = Package(args.binary, args.target, args.version, args.pages_from, level)
        kinds = args.only or ["archive", "npm", "wheel", "mcpb", "debian"]
        files = {}
        for kind in kinds:
            files |= getattr(package, kind)()
    else:
        parser.error("--npm-main, or --binary and --target, are required")
    args.out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (args.out / name).write_bytes(data)
        print(args.out / name)


if __name__ == "__main__":
    sys.exit(main())
