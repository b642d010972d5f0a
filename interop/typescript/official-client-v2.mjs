// A client that is built on the official TypeScript SDK and speaks the draft of version 2. It starts an agent, runs one
// turn, responds to permission requests, and prints each event as one line of JSON. The SDK's version 2 client speaks
// no other version, so it fails with an agent of version 1.
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
    // The working directory of the session.
    cwd: { type: "string", default: "." },
    // Reject every permission request.
    reject: { type: "boolean" },
    // Cancel the turn when this happens: message, permission or output.
    "cancel-at": { type: "string" },
    // Resume this session instead of opening a new one, with a replay if `--replay` is given.
    resume: { type: "string" },
    replay: { type: "boolean" },
    // Set a config option (KEY=VALUE) before the turn.
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

/** Raised with the state `idle` that ends the turn. */
let turn;

/** Cancels the turn, if this is what was waited for. */
function happens(what, sessionId, agent) {
  if (args["cancel-at"] === what) void agent.notify(methods.session.cancel, { sessionId });
}

function answer(options) {
  // A client that cancels a turn responds to its pending permission requests with `cancelled`.
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
  // This handler is first. Handlers are tried one after another, so a request does not overtake earlier updates.
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
    // Fill in every number of a form with the maximum.
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
  // With an agent of another version, the SDK ends the connection, and `drive` has reported the reason.
  .catch(() => {});
// Agents exit when their stdin ends. If ours does not, this program does not exit, either.
child.stdin.end();
