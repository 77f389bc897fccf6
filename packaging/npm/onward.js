#!/usr/bin/env node
// Starts the binary of the package for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const name = process.platform === "win32" ? "onward.exe" : "onward";
const supported = Object.keys(require("../package.json").optionalDependencies).map((dependency) =>
  dependency.replace("onward-", ""),
);

function fail(message, hint) {
  process.stderr.write(`error: ${message}\nhint: ${hint}\n`);
  process.exit(1);
}

function findBinary() {
  try {
    return require.resolve(`onward-${platform}/bin/${name}`);
  } catch {
    if (!supported.includes(platform)) {
      fail(
        `onward has no npm package for ${platform}; available: ${supported.join(", ")}`,
        "build it with `cargo install onward --locked`",
      );
    }
    fail(
      `the package onward-${platform} is not installed`,
      "reinstall without `--omit=optional`; on a Linux system without glibc, build onward with `cargo install onward --locked`",
    );
  }
}

const child = spawn(findBinary(), process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to both processes. Other senders reach only this one.
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
  process.on(signal, () => {
    if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => fail(`cannot start ${child.spawnfile}: ${error.message}`, "reinstall onward"));
child.on("exit", (code, signal) => {
  process.exitCode = code ?? 128 + (os.constants.signals[signal] ?? 0);
});
