// An agent on stdin and stdout that is built on the official TypeScript SDK and speaks the draft of version 2. It
// accepts the prompts of official-agent.mjs, except that it reads and writes files and runs commands itself, because
// version 2 has no methods for them.
//
// With `--auth`, it opens sessions only after `auth/login`. With `--store FILE`, it stores sessions in the file, so
// that another process can list, resume and delete them. With `--both`, it also speaks version 1 with clients that
// request it, and repeats each prompt with the version.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import * as v1 from "@agentclientprotocol/sdk";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { arrived, asMessage, Flag, stream, text, textOf } from "./peer.mjs";
import { askPermission, runCommand, work } from "./work-v2.mjs";

const { values: args } = parseArgs({
  options: { auth: { type: "boolean" }, store: { type: "string" }, both: { type: "boolean" } },
});
const { RequestError } = acp;
const client = acp.methods.client;
const asIs = (params) => params;

/** The sessions that are open, by id: where they work, what is set, what was said. */
const sessions = new Map();
let authenticated = false;

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
  const option = (configId, name, values) => {
    const options = values.map((value) => ({ value, name: value }));
    const currentValue = session[configId];
    return { configId, name, category: configId, type: "select", currentValue, options };
  };
  return {
    configOptions: [
      option("mode", "Mode", ["ask", "code"]),
      option("model", "Model", ["small", "large"]),
      { configId: "loud", name: "Loud", type: "boolean", currentValue: session.loud },
    ],
  };
}

function open(id, cwd, history) {
  // Each message and terminal gets its own number. Earlier processes have used at most this many numbers.
  const next = history.length;
  const session = { id, cwd, mode: "ask", model: "small", loud: false, title: null, history, next };
  sessions.set(id, session);
  return session;
}

/** An open session. */
function find(id) {
  const session = sessions.get(id);
  if (!session) throw RequestError.sessionNotFound(id);
  return session;
}

/** A turn of a session: what is sent in it, and remembered. */
class Turn {
  constructor(session, peer) {
    this.session = session;
    this.peer = peer;
    this.message = this.newId("message");
  }

  /** An id that the session does not have yet. */
  newId(kind) {
    this.session.next += 1;
    return `${kind}-${this.session.next}`;
  }

  /** Reports, and keeps what a person would see again when the session is resumed. */
  async update(sessionUpdate, fields) {
    const update = { sessionUpdate, ...fields };
    if (sessionUpdate !== "state_update") this.session.history.push(update);
    if (sessionUpdate === "session_info_update") this.session.title = fields.title;
    await this.peer.notify(client.session.update, { sessionId: this.session.id, update });
  }

  say(words) {
    return this.update("agent_message_chunk", { messageId: this.message, content: text(words) });
  }

  state(state, fields) {
    return this.update("state_update", { state, ...fields });
  }

  /** All config options, as they are. */
  settings() {
    return this.update("config_option_update", settings(this.session));
  }

  /** Asks the client something about this session; nothing else goes on meanwhile. */
  async ask(method, params, options) {
    await this.state("requires_action");
    try {
      return await this.peer.request(method, { sessionId: this.session.id, ...params }, options);
    } finally {
      await this.state("running");
    }
  }

  async sayError(asking) {
    const code = await asking.then(() => 0, (error) => asMessage(error).code);
    await this.say(`error ${code}`);
    return "end_turn";
  }

  /** From the prompt to the state `idle`. */
  async run(messageId, prompt) {
    await this.update("user_message", { messageId, content: prompt });
    await this.state("running");
    let ended;
    try {
      ended = { stopReason: await answer(this, prompt) };
    } catch (error) {
      // The prompt has been accepted, so a failure ends the turn and not the request.
      ended = { stopReason: "error", error: asMessage(error) };
    }
    const { id, cwd, history, title } = this.session;
    store((all) => {
      all[id] = { cwd, history, title };
    });
    this.session.running = undefined;
    await this.state("idle", ended);
  }
}

/** Ends what runs in a session, and waits for that. */
async function cancel(session) {
  session?.running?.cancelled.raise();
  await session?.running?.ended;
}

const agent = acp
  .agent({ name: "official-agent-v2" })
  .onRequest("initialize", () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "official-agent-v2", version: "1.0" },
    authMethods: args.auth ? [{ type: "agent", methodId: "key", name: "A key" }] : [],
    capabilities: {
      session: { prompt: { embeddedContext: {} }, ...(args.store ? { delete: {} } : {}) },
      ...(args.auth ? { auth: {} } : {}),
    },
  }))
  .onRequest("auth/login", ({ params }) => {
    if (params.methodId !== "key") throw RequestError.invalidParams();
    authenticated = true;
  })
  .onRequest("auth/logout", () => {
    authenticated = false;
  })
  .onRequest("session/new", ({ params }) => {
    if (args.auth && !authenticated) throw RequestError.authRequired();
    const session = open(`official-${process.pid}-${sessions.size}`, params.cwd, []);
    return { sessionId: session.id, ...settings(session) };
  })
  .onRequest("session/resume", async ({ params, client: peer }) => {
    const { sessionId, cwd, replayFrom } = params;
    const found = stored()[sessionId];
    if (!found) throw RequestError.sessionNotFound(sessionId);
    const session = open(sessionId, cwd, found.history);
    const replayed = replayFrom?.type === "start" ? found.history : [];
    // Send the replay first, then the current state, and then the response.
    const present = { sessionUpdate: "state_update", state: "idle" };
    for (const update of [...replayed, present]) {
      await peer.notify(client.session.update, { sessionId, update });
    }
    return settings(session);
  })
  .onRequest("session/list", ({ params }) => {
    // Return one session per page, so that the client has to request several pages.
    const all = Object.entries(stored()).filter(([, s]) => !params.cwd || s.cwd === params.cwd);
    const at = Number(params.cursor ?? 0);
    return {
      sessions: all.slice(at, at + 1).map(([sessionId, { cwd, title }]) => ({ sessionId, cwd, title })),
      nextCursor: at + 1 < all.length ? String(at + 1) : null,
    };
  })
  .onRequest("session/close", async ({ params }) => {
    await cancel(sessions.get(params.sessionId));
    sessions.delete(params.sessionId);
  })
  .onRequest("session/delete", ({ params }) => store((all) => delete all[params.sessionId]))
  .onRequest("session/set_config_option", ({ params: { sessionId, configId, value } }) => {
    const session = find(sessionId);
    const values = { mode: ["ask", "code"], model: ["small", "large"], loud: [true, false] };
    if (!values[configId]?.includes(value)) throw RequestError.invalidParams();
    session[configId] = value;
    return settings(session);
  })
  .onRequest("session/prompt", ({ params, client: peer }) => {
    const session = find(params.sessionId);
    if (session.running) throw RequestError.invalidRequest("the session is busy");
    const turn = new Turn(session, peer);
    const messageId = turn.newId("message");
    const cancelled = new Flag();
    // The SDK sends the response when this returns, before the updates of the turn.
    const ended = arrived().then(() => turn.run(messageId, params.prompt));
    session.running = { cancelled, ended };
    return { messageId };
  })
  .onNotification("session/cancel", ({ params }) => cancel(sessions.get(params.sessionId)))
  .onRequest("_interop/ask", asIs, ({ params }) => ({
    answer: `the official agent heard ${params.question}`,
  }))
  .onNotification("_interop/told", asIs, ({ params, client: peer }) =>
    // Send it back, so that the sender can see that it has arrived.
    peer.notify("_interop/told", { what: `the official agent was told ${params.what}` }),
  );

async function answer(turn, prompt) {
  const { session, peer } = turn;
  const words = textOf(prompt);
  switch (words.split(/\s/, 1)[0]) {
    case "work":
      return work(turn);
    case "wait":
      await turn.say("waiting");
      await session.running.cancelled.happened;
      return "cancelled";
    case "wait-permission": {
      await turn.update("tool_call_update", { toolCallId: "ask", title: "Ask", kind: "edit", status: "pending" });
      const { outcome } = await askPermission(turn, "Ask?", { toolCallId: "ask" });
      if (outcome !== "cancelled") {
        await turn.say("there was an answer");
        return "end_turn";
      }
      await turn.say("the question was withdrawn");
      await session.running.cancelled.happened;
      return "cancelled";
    }
    case "wait-command": {
      const script = "echo $$ > pid; echo started; exec sleep 600";
      const { signal } = await runCommand(turn, "run", "Wait", script, session.running.cancelled.happened);
      if (!signal) return "end_turn";
      await turn.say("the command was ended");
      return "cancelled";
    }
    case "ask-withdraw": {
      const withdrawn = new AbortController();
      const asking = peer.request("_interop/wait", {}, { cancellationSignal: withdrawn.signal });
      withdrawn.abort();
      return turn.sayError(asking);
    }
    case "ask-person": {
      const filled = await turn.ask(client.elicitation.create, {
        mode: "form",
        message: "How loud?",
        requestedSchema: {
          type: "object",
          properties: { loudness: { type: "integer", minimum: 0, maximum: 11 } },
          required: ["loudness"],
        },
      });
      await turn.say(`${filled.action} ${filled.content?.loudness}`);
      return "end_turn";
    }
    case "ask-extension": {
      await peer.notify("_interop/told", { what: "a turn runs" });
      const asked = await peer.request("_interop/ask", { question: "how are you" });
      await turn.say(asked.answer);
      return "end_turn";
    }
    case "ask-unknown":
      return turn.sayError(peer.request("terminal/explode", {}));
    case "settings":
      await turn.say(`${session.mode} ${session.model} ${session.loud}`);
      return "end_turn";
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

const parrot = v1
  .agent({ name: "official-agent-v2" })
  .onRequest("initialize", () => ({
    protocolVersion: v1.PROTOCOL_VERSION,
    agentInfo: { name: "official-agent-v2", version: "1.0" },
  }))
  .onRequest("session/new", () => ({ sessionId: "parrot" }))
  .onRequest("session/prompt", async ({ params: { sessionId, prompt }, client: peer }) => {
    const content = text(`${textOf(prompt)}, in version 1`);
    const update = { sessionUpdate: "agent_message_chunk", content };
    await peer.notify("session/update", { sessionId, update });
    return { stopReason: "end_turn" };
  });

const pipes = stream(acp, process.stdout, process.stdin);
if (args.both) acp.agentProtocolRouter().withV1(parrot).withV2(agent).connect(pipes);
else agent.connect(pipes);
