// Makes the npm packages of a release: `acp-toolkit`, which starts the program, and one package with the program for
// each platform.
//
//     node release/npm/build.mjs VERSION OUT TARGET=PROGRAM...
//
// OUT gets a tarball for each PROGRAM, which is built for TARGET, and `acp-toolkit-VERSION.tgz`. A release has all
// targets of `platforms.json`.

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const here = import.meta.dirname;
const root = path.join(here, "../..");
const platforms = JSON.parse(readFileSync(path.join(here, "platforms.json"), "utf8"));

const [version, out, ...programs] = process.argv.slice(2);
if (!version || !out) {
  console.error("usage: node build.mjs VERSION OUT TARGET=PROGRAM...");
  process.exit(2);
}
mkdirSync(out, { recursive: true });

/** Packs a package with these fields of its own and these files, given as [name, source]. */
function pack(own, files) {
  const directory = mkdtempSync(path.join(tmpdir(), "acp-npm-"));
  const manifest = { version, license: "MIT OR Apache-2.0", ...repository(), ...own };
  writeFileSync(path.join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  for (const license of ["LICENSE-MIT", "LICENSE-APACHE"]) files.push([license, path.join(root, license)]);
  for (const [name, source] of files) {
    const file = path.join(directory, name);
    mkdirSync(path.dirname(file), { recursive: true });
    copyFileSync(source, file);
    if (/^(acp|acp\.exe|acp\.js)$/.test(path.basename(name))) chmodSync(file, 0o755);
  }
  // npm is a script of the shell on Windows.
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const shell = process.platform === "win32";
  execFileSync(npm, ["pack", "--silent", "--pack-destination", path.resolve(out)], { cwd: directory, stdio: "inherit", shell });
  rmSync(directory, { recursive: true });
}

/** npm shows where a package was built only if it says where its source is. */
function repository() {
  const address = process.env.GITHUB_REPOSITORY;
  return address ? { repository: { type: "git", url: `git+https://github.com/${address}.git` } } : {};
}

for (const argument of programs) {
  const at = argument.indexOf("=");
  const [target, program] = [argument.slice(0, at), argument.slice(at + 1)];
  const found = Object.entries(platforms).find(([, platform]) => platform.target === target);
  if (at < 0 || !found) {
    console.error(`not TARGET=PROGRAM with a target of platforms.json: ${argument}`);
    process.exit(2);
  }
  const [name, { os, cpu, libc }] = found;
  const own = {
    name: `acp-toolkit-${name}`,
    description: `The program of acp-toolkit for ${name}`,
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    // Not run from an archive of the package manager: it must be a file.
    preferUnplugged: true,
  };
  pack(own, [[os === "win32" ? "acp.exe" : "acp", program]]);
}

const names = Object.keys(platforms).map((name) => `acp-toolkit-${name}`);
pack(
  {
    name: "acp-toolkit",
    description: "Run, chat with, serve and debug agents of the Agent Client Protocol",
    keywords: ["acp", "agent", "agent-client-protocol", "cli", "editor"],
    // `npx acp-toolkit` starts the one that is called like the package.
    bin: { acp: "bin/acp.js", "acp-toolkit": "bin/acp.js" },
    engines: { node: ">=18" },
    optionalDependencies: Object.fromEntries(names.map((name) => [name, version])),
  },
  [
    ["bin/acp.js", path.join(here, "acp.js")],
    ["platforms.json", path.join(here, "platforms.json")],
    ["README.md", path.join(here, "README.md")],
  ],
);
