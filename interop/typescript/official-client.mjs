// A client that is built on the official TypeScript SDK. It starts an agent or connects to one, runs one turn, provides
// real files and terminals, responds to permission requests, and prints each event as one line of JSON. Its options and
// output are those of `official-client.rs`, which is built on the official Rust SDK, and some more.
//
//     official-client.mjs [OPTIONS] PROMPT -- AGENT COMMAND...
//     official-client.mjs [OPTIONS] --url URL PROMPT

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { arrived, asMessage, print, stream } from "./peer.mjs";
import { Terminals } from "./terminals.mjs";

const dashes = process.argv.indexOf("--");
const end = dashes < 0 ? process.argv.length : dashes;
const [program, ...programArgs] = process.argv.slice(end + 1);
const { values: args, positionals } = parseArgs({
  args: process.argv.slice(2, end),
  allowPositionals: true,
  options: {
    // Connects to this server instead of starting an agent, with this token in a header.
    url: { type: "string" },
    token: { type: "string" },
    // The working directory of the session.
    cwd: { type: "string", default: "." },
    // Reject every permission request.
    reject: { type: "boolean" },
    // Cancel the turn when this happens: message, permission or output.
    "cancel-at": { type: "string" },
    // Load or resume this session instead of opening a new one.
    load: { type: "string" },
    resume: { type: "string" },
    // Set the mode or a config option (KEY=VALUE) before the turn.
    mode: { type: "string" },
    option: { type: "string" },
    // Log in with this auth method before opening a session, and log out after that.
    authenticate: { type: "string" },
    logout: { type: "boolean" },
    // Call this method before the turn, and print the response.
    call: { type: "string", multiple: true, default: [] },
    // Send `_interop/ask` and `_interop/told` before the turn.
    extension: { type: "boolean" },
    // Send a request that gets no response before the turn, and cancel it.
    withdraw: { type: "boolean" },
    // List all sessions before the turn.
    list: { type: "boolean" },
    // Close and delete the session after the turn.
    close: { type: "boolean" },
    delete: { type: "boolean" },
  },
});
const [prompt] = positionals;
const { agent: methods } = acp.methods;
const asIs = (params) => params;

/** Cancels the turn, if this is what was waited for. */
function happens(what, sessionId, agent) {
  if (args["cancel-at"] === what) void agent.notify(methods.session.cancel, { sessionId });
}

const terminals = new Terminals((sessionId, agent) => happens("output", sessionId, agent));

function answer(options) {
  // A client that cancels a turn responds to its pending permission requests with `cancelled`.
  if (args["cancel-at"] === "permission") return { outcome: "cancelled" };
  const wanted = args.reject ? "reject_once" : "allow_once";
  const chosen = options.find((option) => option.kind === wanted);
  return chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" };
}

function read({ path, line, limit }) {
  let content;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") throw acp.RequestError.resourceNotFound(path);
    throw error;
  }
  const lines = content.split(/(?<=\n)/);
  const first = (line ?? 1) - 1;
  return { content: lines.slice(first, limit == null ? undefined : first + limit).join("") };
}

/** A handler that tells of the request before it serves it. */
function served(what, serve) {
  return ({ params, agent }) => {
    print(what, params);
    return serve(params, agent);
  };
}

const app = acp
  .client({ name: "official-client" })
  // This handler is first. Handlers are tried one after another, so a request does not overtake earlier updates.
  .onNotification("session/update", ({ params: { sessionId, update }, agent }) => {
    print("update", update);
    if (update.sessionUpdate === "agent_message_chunk") happens("message", sessionId, agent);
  })
  .onNotification("_interop/told", asIs, ({ params }) => print("told", params))
  .onRequest(
    "session/request_permission",
    served("permission", ({ sessionId, options }, agent) => {
      happens("permission", sessionId, agent);
      return { outcome: answer(options) };
    }),
  )
  .onRequest("fs/read_text_file", served("read", read))
  .onRequest("fs/write_text_file", served("write", ({ path, content }) => writeFileSync(path, content)))
  .onRequest("terminal/create", served("create", (params, agent) => terminals.create(params, agent)))
  .onRequest("terminal/output", served("output", (params) => terminals.find(params).shown()))
  .onRequest("terminal/wait_for_exit", served("wait", (params) => terminals.find(params).ended))
  .onRequest("terminal/kill", served("kill", (params) => terminals.find(params).kill()))
  .onRequest("terminal/release", served("release", (params) => terminals.release(params)))
  .onRequest(
    "_interop/ask",
    asIs,
    served("asked", ({ question }) => ({ answer: `the official client heard ${question}` })),
  );

/** From the first message to the stop reason. */
async function drive(agent) {
  /** Makes a request, and tells of the answer after all that came ahead of it. */
  const ask = async (what, method, params, options) => {
    const answer = await agent.request(method, params, options);
    await arrived();
    print(what, answer);
    return answer;
  };
  /** As `ask`, where the answer may be an error. */
  const attempt = (method, params, options) =>
    ask("answer", method, params, options).catch((error) => print("refused", { code: asMessage(error).code }));

  await ask("initialized", methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "official-client", version: "1.0" },
  });
  if (args.authenticate) await ask("authenticated", methods.authenticate, { methodId: args.authenticate });
  for (const method of args.call) await attempt(method, {});
  if (args.withdraw) {
    const withdrawn = new AbortController();
    const asking = attempt("_interop/wait", {}, { cancellationSignal: withdrawn.signal });
    withdrawn.abort();
    await asking;
  }
  if (args.extension) {
    await agent.notify("_interop/told", { what: "hello" });
    await ask("answer", "_interop/ask", { question: "who are you" });
  }
  if (args.list) {
    let cursor;
    do {
      ({ nextCursor: cursor } = await ask("listed", methods.session.list, { cursor }));
    } while (cursor);
  }

  const setup = { cwd: resolve(args.cwd), mcpServers: [] };
  let sessionId = args.load ?? args.resume;
  if (args.load) await ask("loaded", methods.session.load, { sessionId, ...setup });
  else if (args.resume) await ask("resumed", methods.session.resume, { sessionId, ...setup });
  else ({ sessionId } = await ask("opened", methods.session.new, setup));
  if (args.logout) await ask("logged_out", methods.logout, {});
  if (args.mode) await ask("mode", methods.session.setMode, { sessionId, modeId: args.mode });
  if (args.option) {
    const [configId, value] = args.option.split("=");
    await ask("option", methods.session.setConfigOption, { sessionId, configId, value });
  }
  await ask("ended", methods.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  if (args.close) await ask("closed", methods.session.close, { sessionId });
  if (args.delete) await ask("deleted", methods.session.delete, { sessionId });
}

/** A stream to the server: WebSocket or streamable HTTP, as the URL says. */
function connect(url) {
  const headers = args.token ? { Authorization: `Bearer ${args.token}` } : {};
  return url.startsWith("ws")
    ? createWebSocketStream(url, { headers, WebSocket })
    : createHttpStream(url, { headers });
}

const child = args.url ? null : spawn(program, programArgs, { stdio: ["pipe", "pipe", "inherit"] });
const agentStream = args.url ? connect(args.url) : stream(acp, child.stdin, child.stdout);
let isOver = false;
// An answer may still be on its way when the turn has ended, such as that a terminal was released. The SDK's HTTP
// client aborts its POST when the stream is closed, and nothing catches that.
process.on("unhandledRejection", (error) => {
  if (!isOver || error?.name !== "AbortError") throw error;
});
await app.connectWith(agentStream, (agent) =>
  drive(agent)
    .catch((error) => print("error", asMessage(error)))
    .finally(() => (isOver = true)),
);
// Agents exit when their stdin ends. If ours does not, this program does not exit, either.
child?.stdin.end();
