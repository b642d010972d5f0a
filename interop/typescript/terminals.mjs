// Commands that a client runs for an agent.

import { spawn } from "node:child_process";
import { RequestError } from "@agentclientprotocol/sdk";

export class Terminals {
  #open = new Map();
  #created = 0;
  #printed;

  /** `printed` is told whenever a command has printed something. */
  constructor(printed) {
    this.#printed = printed;
  }

  create({ sessionId, command, args = [], env = [], cwd }, agent) {
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const terminalId = `terminal-${this.#created++}`;
    this.#open.set(terminalId, new Terminal(child, () => this.#printed(sessionId, agent)));
    return { terminalId };
  }

  find({ terminalId }) {
    const terminal = this.#open.get(terminalId);
    if (!terminal) throw RequestError.resourceNotFound(terminalId);
    return terminal;
  }

  async release(params) {
    const terminal = this.find(params);
    this.#open.delete(params.terminalId);
    terminal.kill();
    await terminal.ended;
  }
}

class Terminal {
  #child;
  #output = [];
  #exit = null;

  constructor(child, printed) {
    this.#child = child;
    for (const pipe of [child.stdout, child.stderr]) {
      pipe.on("data", (bytes) => {
        this.#output.push(bytes);
        printed();
      });
    }
    /** How it ended; what was printed last is there when this is told. */
    this.ended = new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (exitCode, signal) => {
        this.#exit = { exitCode, signal };
        resolve(this.#exit);
      });
    });
    this.ended.catch(() => {});
  }

  shown() {
    const output = Buffer.concat(this.#output).toString("utf8");
    return { output, truncated: false, exitStatus: this.#exit };
  }

  kill() {
    this.#child.kill("SIGKILL");
  }
}
