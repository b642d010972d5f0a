// The agent of the benchmark on the official TypeScript SDK. What it does: ../README.md.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { methods, RequestError } = acp;
const sessions = new Set();
// The largest work is a file of 64 MiB in one message; the SDK takes 32 MiB if it is not told otherwise.
const limits = { maxMessageBytes: 80 * 1024 * 1024 };

function say(client, sessionId, text) {
  return client.notify(methods.client.session.update, {
    sessionId,
    update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
  });
}

async function sendChunks(client, sessionId, count, bytes) {
  for (let i = 0; i < count; i++) {
    await say(client, sessionId, String(i).padStart(8, "0").padEnd(bytes, "x"));
  }
}

async function askPermissions(client, sessionId, count) {
  for (let i = 0; i < count; i++) {
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: `call-${i}`, title: "work" },
      options: [
        { optionId: "allow", name: "Allow", kind: "allow_once" },
        { optionId: "reject", name: "Reject", kind: "reject_once" },
      ],
    });
    if (outcome.outcome !== "selected" || outcome.optionId !== "allow") {
      throw RequestError.internalError({ outcome }, "permission was not given");
    }
  }
}

async function readFile(client, sessionId, path) {
  const { content } = await client.request(methods.client.fs.readTextFile, { sessionId, path });
  await say(client, sessionId, String(Buffer.byteLength(content)));
}

async function runTurn(client, sessionId, text) {
  // A path may have spaces in it, so only the first word is cut off.
  const [, word, rest] = /^(\S*) ?(.*)$/s.exec(text);
  const numbers = rest.split(" ").map(Number);
  switch (word) {
    case "stream":
      return sendChunks(client, sessionId, ...numbers);
    case "ask":
      return askPermissions(client, sessionId, ...numbers);
    case "read":
      return readFile(client, sessionId, rest);
    default:
      throw RequestError.invalidParams({ prompt: text }, "unknown prompt");
  }
}

acp
  .agent({ name: "bench-agent" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: true },
  }))
  .onRequest(methods.agent.session.new, () => {
    const sessionId = `s${sessions.size + 1}`;
    sessions.add(sessionId);
    return { sessionId };
  })
  .onRequest(methods.agent.session.load, async ({ params: { sessionId }, client }) => {
    const replay = /^replay-(\d+)-(\d+)$/.exec(sessionId);
    if (!replay) throw RequestError.sessionNotFound(sessionId);
    await sendChunks(client, sessionId, Number(replay[1]), Number(replay[2]));
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    if (!sessions.has(sessionId)) throw RequestError.sessionNotFound(sessionId);
    const text = prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
    await runTurn(client, sessionId, text);
    return { stopReason: "end_turn" };
  })
  .onRequest("_bench/empty", (params) => params, () => ({}))
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin), limits));
