#!/usr/bin/env node
// Starts the program `acp` for this platform. It is in one of the optional dependencies of this package, of which npm
// installs the one that fits.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const path = require("node:path");
const platforms = require("../platforms.json");

/** Returns the path of the program, or undefined. */
function find() {
  for (const [name, { os, cpu }] of Object.entries(platforms)) {
    if (os !== process.platform || cpu !== process.arch) continue;
    try {
      const manifest = require.resolve(`acp-toolkit-${name}/package.json`);
      return path.join(path.dirname(manifest), os === "win32" ? "acp.exe" : "acp");
    } catch {
      // Not installed: it is for another libc, or npm was told to omit optional dependencies.
    }
  }
  return undefined;
}

const program = process.env.ACP_BINARY || find();
if (!program) {
  console.error(
    `acp: there is no program for ${process.platform}-${process.arch}. Install this package with its optional ` +
      "dependencies, build the program with `cargo install acp-toolkit`, or set ACP_BINARY to its path",
  );
  process.exit(1);
}

// Ctrl-C reaches both from the terminal. What is sent to this process alone is passed on. Either way, this process ends
// with the program, not before it. The handlers come first: a signal that arrives while the program is being started
// waits in the event loop until `child` is set, and does not end this process alone.
let child;
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}

// The program has this process's stdin, stdout and stderr: a client speaks with it as if it had started it.
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });

child.on("error", (error) => {
  console.error(`acp: cannot start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  // As a shell reports a program that a signal has terminated.
  process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : code);
});
