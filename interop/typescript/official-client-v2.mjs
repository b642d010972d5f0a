// A client that is built on the official TypeScript SDK and speaks the draft of version 2: starts an agent,
// runs one turn, answers permission requests, and prints what happens as JSON, one line each. The SDK's own
// client of version 2 speaks no other: with an agent of version 1 it ends with an error.
//
//     official-client-v2.mjs [OPTIONS] PROMPT -- AGENT COMMAND...

import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { arrived, asMessage, Flag, print, stream } from "./peer.mjs";

const end = process.argv.indexOf("--");
const [program, ...programArgs] = process.argv.slice(end + 1);
const { values: args, positionals } = parseArgs({
  args: process.argv.slice(2, end),
  allowPositionals: true,
  options: {
    // Where the session works.
    cwd: { type: "string", default: "." },
    // Says no to every permission request.
    reject: { type: "boolean" },
    // Cancels the turn when this happens: message, permission or output.
    "cancel-at": { type: "string" },
    // Resumes this session instead of opening a new one, with its past if `--replay` is given.
    resume: { type: "string" },
    replay: { type: "boolean" },
    // Sets a config option (KEY=VALUE) before the turn.
    option: { type: "string" },
    // Authenticates by this method before it opens a session; logs out when it has been opened.
    authenticate: { type: "string" },
    logout: { type: "boolean" },
    // Makes a request of this method before the turn, and prints the answer.
    call: { type: "string", multiple: true, default: [] },
    // Sends `_interop/ask` and `_interop/told` before the turn.
    extension: { type: "boolean" },
    // Makes a request that is not answered before the turn, and takes it back.
    withdraw: { type: "boolean" },
    // Lists all sessions before the turn.
    list: { type: "boolean" },
    // Closes and deletes the session after the turn.
    close: { type: "boolean" },
    delete: { type: "boolean" },
  },
});
const [prompt] = positionals;
const { agent: methods } = acp.methods;
const asIs = (params) => params;

/** Raised with the state `idle` that ends the turn. */
let turn;

/** Cancels the turn, if this is what was waited for. */
function happens(what, sessionId, agent) {
  if (args["cancel-at"] === what) void agent.notify(methods.session.cancel, { sessionId });
}

function answer(options) {
  // A client that cancels a turn answers its open questions like this.
  if (args["cancel-at"] === "permission") return { outcome: "cancelled" };
  const wanted = args.reject ? "reject_once" : "allow_once";
  const chosen = options.find((option) => option.kind === wanted);
  return chosen ? { outcome: "selected", optionId: chosen.optionId } : { outcome: "cancelled" };
}

/** A handler that tells of the request before it serves it. */
function served(what, serve) {
  return ({ params, agent }) => {
    print(what, params);
    return serve(params, agent);
  };
}

const app = acp
  .client({ name: "official-client-v2" })
  // First: handlers are tried one after the other, so that a request overtakes no update before it.
  .onNotification("session/update", ({ params: { sessionId, update }, agent }) => {
    print("update", update);
    switch (update.sessionUpdate) {
      case "agent_message":
      case "agent_message_chunk":
        return happens("message", sessionId, agent);
      case "terminal_output_chunk":
        return happens("output", sessionId, agent);
      case "state_update":
        if (update.state === "idle") turn?.raise(update);
    }
  })
  .onNotification("_interop/told", asIs, ({ params }) => print("told", params))
  .onRequest(
    "session/request_permission",
    served("permission", ({ sessionId, options }, agent) => {
      happens("permission", sessionId, agent);
      return { outcome: answer(options) };
    }),
  )
  .onRequest(
    "elicitation/create",
    // Fills in every number it is asked for: as much as is allowed.
    served("form", ({ requestedSchema: { properties } }) => ({
      action: "accept",
      content: Object.fromEntries(Object.entries(properties).map(([name, { maximum }]) => [name, maximum])),
    })),
  )
  .onRequest(
    "_interop/ask",
    asIs,
    served("asked", ({ question }) => ({ answer: `the official client heard ${question}` })),
  );

/** From the first message to the end of the turn. */
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

  const { capabilities } = await ask("initialized", methods.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    capabilities: { elicitation: { form: {} } },
    info: { name: "official-client-v2", version: "1.0" },
  });
  if (!capabilities?.session) throw acp.RequestError.invalidParams("the agent offers no sessions");
  if (args.authenticate) await ask("authenticated", methods.auth.login, { methodId: args.authenticate });
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
  let sessionId = args.resume;
  if (sessionId) {
    const replayFrom = args.replay ? { type: "start" } : null;
    await ask("resumed", methods.session.resume, { sessionId, replayFrom, ...setup });
  } else {
    ({ sessionId } = await ask("opened", methods.session.new, setup));
  }
  if (args.logout) await ask("logged_out", methods.auth.logout, {});
  if (args.option) {
    const [configId, value] = args.option.split("=");
    await ask("option", methods.session.setConfigOption, { sessionId, configId, type: "id", value });
  }
  turn = new Flag();
  await ask("prompted", methods.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  const { stopReason, error } = await turn.happened;
  print("ended", { stopReason, error });
  if (args.close) await ask("closed", methods.session.close, { sessionId });
  if (args.delete) await ask("deleted", methods.session.delete, { sessionId });
}

const child = spawn(program, programArgs, { stdio: ["pipe", "pipe", "inherit"] });
await app
  .connectWith(stream(acp, child.stdin, child.stdout), (agent) =>
    drive(agent).catch((error) => print("error", asMessage(error))),
  )
  // An agent of another version: the SDK ends the connection, and `drive` has told why.
  .catch(() => {});
// Agents end when their stdin does. Ours must; whatever does not end keeps this from ending, too.
child.stdin.end();
