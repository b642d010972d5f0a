// The client of the benchmark on the official TypeScript SDK. What it is told, and how: ../README.md.
//
//     client.mjs SOCKET

import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { setImmediate, setTimeout } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk";

const { methods } = acp;
// The largest work is a file of 64 MiB in one message; the SDK takes 32 MiB if it is not told otherwise.
const limits = { maxMessageBytes: 80 * 1024 * 1024 };

/** The chunks that are to come in a session: how many, how long, and what came instead. */
class Expected {
  seen = 0;
  error = null;

  constructor(messages, bytes) {
    this.messages = messages;
    this.bytes = bytes;
  }

  take(text) {
    if (text.length !== this.bytes || Number(text.slice(0, 8)) !== this.seen) {
      this.error ??= `chunk ${this.seen} is ${text.length} bytes long and begins with ${text.slice(0, 8)}`;
    }
    this.seen += 1;
  }

  finish() {
    if (this.error) throw new Error(this.error);
    if (this.seen !== this.messages) throw new Error(`${this.seen} chunks came, not ${this.messages}`);
  }
}

/** The text that is to come in a session, in whatever pieces. */
class Text {
  text = "";

  take(text) {
    this.text += text;
  }
}

/** The sessions that are used. */
const sessions = [];
/** What takes the chunks of a session, by its id. */
const takers = new Map();
/** How long the handler of the next chunk waits. */
let sleepMs = 0;
/** When each permission request of the turn arrived. */
let asked = [];

const socket = connect(process.argv[2]);

const connection = acp
  .client({ name: "bench-client" })
  .onNotification(methods.client.session.update, async ({ params: { sessionId, update } }) => {
    if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return;
    takers.get(sessionId)?.take(update.content.text);
    if (sleepMs) {
      const wait = sleepMs;
      sleepMs = 0;
      await setTimeout(wait);
    }
  })
  .onRequest(methods.client.session.requestPermission, ({ params: { options } }) => {
    asked.push(process.hrtime.bigint());
    const { optionId } = options.find(({ kind }) => kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params: { path } }) => ({
    content: await readFile(path, "utf8"),
  }))
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin), limits));
const { agent } = connection;

const setup = { cwd: "/", mcpServers: [] };

async function openSession() {
  const { sessionId } = await agent.request(methods.agent.session.new, setup);
  return sessionId;
}

/** Some session, opened if there is none yet. */
async function firstSession() {
  if (sessions.length === 0) sessions.push(await openSession());
  return sessions[0];
}

async function prompt(sessionId, text) {
  const { stopReason } = await agent.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text }],
  });
  if (stopReason !== "end_turn") throw new Error(`the turn ended with ${stopReason}`);
}

/** Does what is answered after updates of a session, and waits for the handlers of these, too. */
async function withUpdates(sessionId, taker, work) {
  takers.set(sessionId, taker);
  try {
    await work();
    // The SDK does not promise that the handlers of what came ahead of an answer have run by now.
    await setImmediate();
  } finally {
    takers.delete(sessionId);
  }
}

async function timed(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start);
}

const commands = {
  async open({ sessions: count }) {
    const opened = [];
    let left = count;
    const open = async () => {
      while (left-- > 0) opened.push(await openSession());
    };
    const ns = await timed(() => Promise.all(Array.from({ length: 64 }, open)));
    sessions.splice(0, sessions.length, ...opened);
    return { ns };
  },

  async stream({ messages, bytes, sleep_ms }) {
    await firstSession();
    sleepMs = sleep_ms ?? 0;
    const turn = async (sessionId) => {
      const expected = new Expected(messages, bytes);
      await withUpdates(sessionId, expected, () => prompt(sessionId, `stream ${messages} ${bytes}`));
      expected.finish();
    };
    return { ns: await timed(() => Promise.all(sessions.map(turn))) };
  },

  async empty({ requests }) {
    const each_ns = [];
    const ns = await timed(async () => {
      for (let i = 0; i < requests; i++) {
        each_ns.push(await timed(() => agent.request("_bench/empty", {})));
      }
    });
    return { ns, each_ns };
  },

  async ask({ requests }) {
    const sessionId = await firstSession();
    asked = [];
    const ns = await timed(() => prompt(sessionId, `ask ${requests}`));
    if (asked.length !== requests) throw new Error(`${asked.length} requests came, not ${requests}`);
    return { ns, each_ns: asked.slice(1).map((at, i) => Number(at - asked[i])) };
  },

  async read({ path, bytes }) {
    const sessionId = await firstSession();
    const said = new Text();
    const ns = await timed(() => withUpdates(sessionId, said, () => prompt(sessionId, `read ${path}`)));
    if (said.text !== String(bytes)) throw new Error(`the agent got ${said.text} bytes, not ${bytes}`);
    return { ns };
  },

  async load({ messages, bytes }) {
    const sessionId = `replay-${messages}-${bytes}`;
    const expected = new Expected(messages, bytes);
    const ns = await timed(() =>
      withUpdates(sessionId, expected, () => agent.request(methods.agent.session.load, { sessionId, ...setup })),
    );
    expected.finish();
    return { ns };
  },
};

function answer(message) {
  socket.write(`${JSON.stringify(message)}\n`);
}

/** An error in words; what the agent says about it is in the data. */
function reason(error) {
  return error.data === undefined ? String(error) : `${error} ${JSON.stringify(error.data)}`;
}

await agent.request(methods.agent.initialize, {
  protocolVersion: acp.PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: true } },
});
answer({ ready: true });

for await (const line of createInterface({ input: socket })) {
  try {
    const command = JSON.parse(line);
    if (!Object.hasOwn(commands, command.do)) throw new Error(`unknown command ${command.do}`);
    answer(await commands[command.do](command));
  } catch (error) {
    answer({ error: reason(error) });
  }
}
connection.close();
