// An agent on stdin and stdout, or with `--listen ADDRESS` over the network, that is built on the
// official TypeScript SDK. Its prompts are those of its twin on the official Rust SDK, `official-agent.rs`,
// and three more:
//
// | prompt         | what happens                                        |
// |----------------|-----------------------------------------------------|
// | `settings`     | sends the settings as text: mode, model, loudness   |
// | `ask-person`   | requests input by a form, and sends it as text      |
// | `ask-withdraw` | sends `_interop/wait` to the client, and cancels it |
//
// With `--auth`, it opens sessions only after `authenticate`. With `--store FILE`, it stores sessions in the file, so
// that another process can list, load, resume and delete them.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import * as acp from "@agentclientprotocol/sdk";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { WebSocketServer } from "ws";
import { asMessage, Flag, stream, text, textOf } from "./peer.mjs";
import { work, openTerminal, requestPermission } from "./work.mjs";

const { values: args } = parseArgs({
  options: { auth: { type: "boolean" }, store: { type: "string" }, listen: { type: "string" } },
});
const { RequestError } = acp;
const client = acp.methods.client;
const asIs = (params) => params;

/** The sessions that are open, by id: where they work, what is set, what was said. */
const sessions = new Map();
let authenticated = false;
/** Whether the client knows options that are a yes or a no. */
let booleans = false;

/** The sessions that were stored, by id. */
function stored() {
  return args.store && existsSync(args.store) ? JSON.parse(readFileSync(args.store, "utf8")) : {};
}

function store(change) {
  if (!args.store) return;
  const all = stored();
  change(all);
  writeFileSync(args.store, JSON.stringify(all));
}

function settings(session) {
  const loud = { id: "loud", name: "Loud", type: "boolean", currentValue: session.loud };
  const option = (id, name, category, currentValue, values) => {
    const options = values.map((value) => ({ value, name: value }));
    return { id, name, category, type: "select", currentValue, options };
  };
  return {
    modes: {
      currentModeId: session.mode,
      availableModes: [
        { id: "ask", name: "Ask" },
        { id: "code", name: "Code" },
      ],
    },
    configOptions: [
      option("model", "Model", "model", session.model, ["small", "large"]),
      ...(booleans ? [loud] : []),
    ],
  };
}

function open(id, cwd, history) {
  const session = { id, cwd, mode: "ask", model: "small", loud: false, title: null, history };
  sessions.set(id, session);
  return session;
}

/** An open session. */
function find(id) {
  const session = sessions.get(id);
  if (!session) throw RequestError.sessionNotFound(id);
  return session;
}

/** A session that was stored; it is open from now on. */
function reopen({ sessionId, cwd }) {
  const found = stored()[sessionId];
  if (!found) throw RequestError.sessionNotFound(sessionId);
  return open(sessionId, cwd, found.history);
}

const app = acp
  .agent({ name: "official-agent" })
  .onRequest("initialize", ({ params }) => {
    booleans = params.clientCapabilities?.session?.configOptions?.boolean != null;
    return {
      protocolVersion: acp.PROTOCOL_VERSION,
      agentInfo: { name: "official-agent", version: "1.0" },
      authMethods: args.auth ? [{ id: "key", name: "A key" }] : [],
      agentCapabilities: {
        loadSession: args.store !== undefined,
        auth: args.auth ? { logout: {} } : {},
        sessionCapabilities: args.store ? { list: {}, resume: {}, close: {}, delete: {} } : {},
      },
    };
  })
  .onRequest("authenticate", ({ params }) => {
    if (params.methodId !== "key") throw RequestError.invalidParams();
    authenticated = true;
  })
  .onRequest("logout", () => {
    authenticated = false;
  })
  .onRequest("session/new", ({ params }) => {
    if (args.auth && !authenticated) throw RequestError.authRequired();
    const session = open(`official-${process.pid}-${sessions.size}`, params.cwd, []);
    return { sessionId: session.id, ...settings(session) };
  })
  .onRequest("session/load", async ({ params, client: peer }) => {
    const session = reopen(params);
    for (const update of session.history) {
      await peer.notify(client.session.update, { sessionId: session.id, update });
    }
    return settings(session);
  })
  .onRequest("session/resume", ({ params }) => settings(reopen(params)))
  .onRequest("session/list", ({ params }) => {
    // Return one session per page, so that the client has to request several pages.
    const all = Object.entries(stored()).filter(([, s]) => !params.cwd || s.cwd === params.cwd);
    const at = Number(params.cursor ?? 0);
    return {
      sessions: all.slice(at, at + 1).map(([sessionId, { cwd, title }]) => ({ sessionId, cwd, title })),
      nextCursor: at + 1 < all.length ? String(at + 1) : null,
    };
  })
  .onRequest("session/close", ({ params }) => {
    find(params.sessionId).cancelled?.raise();
    sessions.delete(params.sessionId);
  })
  .onRequest("session/delete", ({ params }) => store((all) => delete all[params.sessionId]))
  .onRequest("session/set_mode", async ({ params, client: peer }) => {
    const session = find(params.sessionId);
    if (!["ask", "code"].includes(params.modeId)) throw RequestError.invalidParams();
    session.mode = params.modeId;
    const update = { sessionUpdate: "current_mode_update", currentModeId: session.mode };
    await peer.notify(client.session.update, { sessionId: session.id, update });
  })
  .onRequest("session/set_config_option", ({ params: { sessionId, configId, value } }) => {
    const session = find(sessionId);
    const values = { model: ["small", "large"], loud: [true, false] }[configId];
    if (!values?.includes(value)) throw RequestError.invalidParams();
    session[configId] = value;
    return { configOptions: settings(session).configOptions };
  })
  .onRequest("session/prompt", async ({ params, client: peer }) => {
    const session = find(params.sessionId);
    session.cancelled = new Flag();
    const turn = new Turn(session, peer);
    for (const content of params.prompt) {
      session.history.push({ sessionUpdate: "user_message_chunk", content });
    }
    const stopReason = await run(turn, params.prompt);
    const { cwd, history, title } = session;
    store((all) => {
      all[session.id] = { cwd, history, title };
    });
    return { stopReason };
  })
  .onNotification("session/cancel", ({ params }) => sessions.get(params.sessionId)?.cancelled?.raise())
  .onRequest("_interop/ask", asIs, ({ params }) => ({
    answer: `the official agent heard ${params.question}`,
  }))
  .onNotification("_interop/told", asIs, ({ params, client: peer }) =>
    // Send it back, so that the sender can see that it has arrived.
    peer.notify("_interop/told", { what: `the official agent was told ${params.what}` }),
  );

if (args.listen) serve(...args.listen.split(":"));
else app.connect(stream(acp, process.stdout, process.stdin));

/** Serves the agent over WebSocket and streamable HTTP, as the SDK does by itself: without a token, on any path. */
function serve(host, port) {
  const server = new AcpServer({ agent: app });
  const http = createServer(createNodeHttpHandler(server));
  http.on("upgrade", createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
  http.listen(Number(port), host, () => console.error(`serving http://${host}:${http.address().port}/acp`));
}

/** A turn of a session: what is sent in it, and remembered. */
class Turn {
  constructor(session, peer) {
    this.session = session;
    this.peer = peer;
  }

  /** Reports, and keeps what a person would see again when the session is loaded. */
  async update(sessionUpdate, fields) {
    const update = { sessionUpdate, ...fields };
    this.session.history.push(update);
    if (sessionUpdate === "session_info_update") this.session.title = fields.title;
    await this.peer.notify(client.session.update, { sessionId: this.session.id, update });
  }

  say(words) {
    return this.update("agent_message_chunk", { content: text(words) });
  }

  /** Asks the client something about this session. */
  ask(method, params, options) {
    return this.peer.request(method, { sessionId: this.session.id, ...params }, options);
  }

  async sayError(asking) {
    const code = await asking.then(() => 0, (error) => asMessage(error).code);
    await this.say(`error ${code}`);
    return "end_turn";
  }
}

async function run(turn, prompt) {
  const { session, peer } = turn;
  const words = textOf(prompt);
  switch (words.split(/\s/, 1)[0]) {
    case "work":
      return work(turn);
    case "wait":
      await turn.say("waiting");
      await session.cancelled.happened;
      return "cancelled";
    case "wait-permission":
      return waitPermission(turn);
    case "wait-command":
      return waitCommand(turn);
    case "settings":
      await turn.say(`${session.mode} ${session.model} ${session.loud}`);
      return "end_turn";
    case "ask-withdraw":
      return askWithdraw(turn);
    case "ask-person":
      return askPerson(turn);
    case "ask-extension": {
      await peer.notify("_interop/told", { what: "a turn runs" });
      const { answer } = await peer.request("_interop/ask", { question: "how are you" });
      await turn.say(answer);
      return "end_turn";
    }
    case "ask-unknown":
      return turn.sayError(turn.ask("terminal/explode", {}));
    case "ask-missing-file":
      return turn.sayError(turn.ask(client.fs.readTextFile, { path: `${session.cwd}/missing.txt` }));
    case "content":
      for (const block of prompt) await turn.say(`${block.type} `);
      return "end_turn";
    case "refuse":
      return "refusal";
    case "max-tokens":
      return "max_tokens";
    case "fail":
      throw new RequestError(-32050, "the model is on holiday", { until: "Monday" });
    default:
      await turn.say(words);
      return "end_turn";
  }
}

/** Waits for an answer that a client must give when it cancels: `cancelled`. */
async function waitPermission(turn) {
  await turn.update("tool_call", { toolCallId: "ask", title: "Ask", kind: "edit" });
  const { outcome } = await requestPermission(turn, "ask", []);
  if (outcome !== "cancelled") {
    await turn.say("there was an answer");
    return "end_turn";
  }
  await turn.say("the question was withdrawn");
  await turn.session.cancelled.happened;
  return "cancelled";
}

async function waitCommand(turn) {
  await turn.update("tool_call", { toolCallId: "run", title: "Wait", kind: "execute" });
  const script = "echo $$ > pid; echo started; exec sleep 600";
  const terminal = await openTerminal(turn, "run", script);
  const ended = terminal.waitForExit().then(() => "end_turn");
  const reason = await Promise.race([ended, turn.session.cancelled.happened.then(() => "cancelled")]);
  await terminal.release();
  if (reason === "cancelled") {
    // The request that waited for the exit also gets a response or an error, so nothing is left pending.
    await ended.catch(() => {});
    await turn.say("the command was ended");
  }
  return reason;
}

/** Takes a request back by `$/cancel_request`, and says what the client answers to it then. */
async function askWithdraw(turn) {
  const withdrawn = new AbortController();
  const asking = turn.ask("_interop/wait", {}, { cancellationSignal: withdrawn.signal });
  withdrawn.abort();
  return turn.sayError(asking);
}

async function askPerson(turn) {
  const answer = await turn.ask(client.elicitation.create, {
    mode: "form",
    message: "How loud?",
    requestedSchema: {
      type: "object",
      properties: { loudness: { type: "integer", minimum: 0, maximum: 11 } },
      required: ["loudness"],
    },
  });
  await turn.say(`${answer.action} ${answer.content?.loudness}`);
  return "end_turn";
}
