// The prompt `work` of official-agent.mjs, which uses every feature once.

import * as acp from "@agentclientprotocol/sdk";
import { text } from "./peer.mjs";

const { client } = acp.methods;

export async function work(turn) {
  const path = `${turn.session.cwd}/note.txt`;
  await turn.update("agent_thought_chunk", { content: text("First I look.") });
  for (const word of ["Reading ", "the ", "note."]) await turn.say(word);
  await plan(turn, "in_progress", "pending", "pending");
  await turn.update("available_commands_update", {
    availableCommands: [{ name: "work", description: "Do one of everything" }],
  });

  const locations = [{ path, line: 1 }];
  await turn.update("tool_call", {
    toolCallId: "read",
    title: "Read note.txt",
    kind: "read",
    status: "in_progress",
    locations,
  });
  const old = (await turn.ask(client.fs.readTextFile, { path })).content;
  const second = (await turn.ask(client.fs.readTextFile, { path, line: 2, limit: 1 })).content;
  await change(turn, "read", {
    status: "completed",
    content: [{ type: "content", content: text(old) }],
    rawOutput: { second },
  });

  const content = old.toUpperCase();
  const diff = { type: "diff", path, oldText: old, newText: content };
  await turn.update("tool_call", { toolCallId: "edit", title: "Shout", kind: "edit", locations });
  const answer = await requestPermission(turn, "edit", [diff]);
  if (answer.optionId !== "yes") {
    await change(turn, "edit", { status: "failed" });
    await turn.say(" I was not allowed to.");
    return "end_turn";
  }
  await change(turn, "edit", { status: "in_progress" });
  await turn.ask(client.fs.writeTextFile, { path, content });
  await change(turn, "edit", { status: "completed", content: [diff] });
  await plan(turn, "completed", "in_progress", "pending");

  await runCommand(turn);
  await killCommand(turn);
  await plan(turn, "completed", "completed", "completed");

  const cost = { amount: 0.25, currency: "EUR" };
  await turn.update("usage_update", { used: 1200, size: 200_000, cost });
  await turn.update("current_mode_update", { currentModeId: "code" });
  await turn.update("session_info_update", { title: "A loud note" });
  await turn.say(" Done.");
  return "end_turn";
}

/** A command that ends by itself, not well. */
async function runCommand(turn) {
  await turn.update("tool_call", { toolCallId: "run", title: "Count", kind: "execute" });
  const terminal = await openTerminal(turn, "run", "cat note.txt; echo $GREETING >&2; exit 3");
  const { exitCode: code } = await terminal.waitForExit();
  const { output, truncated, exitStatus } = await terminal.currentOutput();
  await terminal.release();
  const rawOutput = { code, output, truncated, ended: exitStatus != null };
  await change(turn, "run", { status: "completed", rawOutput });
}

/** A command that does not. */
async function killCommand(turn) {
  await turn.update("tool_call", { toolCallId: "kill", title: "Wait", kind: "execute" });
  const terminal = await openTerminal(turn, "kill", "exec sleep 600");
  const ran = (await terminal.currentOutput()).exitStatus == null;
  await terminal.kill();
  const { signal } = await terminal.waitForExit();
  await terminal.release();
  const gone = await terminal.currentOutput().then(() => false, () => true);
  await change(turn, "kill", { status: "failed", rawOutput: { ran, signal, gone } });
}

/** Runs a command through the client, and shows it in a tool call. */
export async function openTerminal(turn, call, script) {
  const terminal = await turn.peer.createTerminal({
    sessionId: turn.session.id,
    command: "sh",
    args: ["-c", script],
    env: [{ name: "GREETING", value: "hello" }],
    cwd: turn.session.cwd,
    outputByteLimit: 64 * 1024,
  });
  const content = [{ type: "terminal", terminalId: terminal.id }];
  await change(turn, call, { status: "in_progress", content });
  return terminal;
}

/** What became of the question. */
export async function requestPermission(turn, toolCallId, content) {
  const options = [
    { optionId: "no", name: "No", kind: "reject_once" },
    { optionId: "yes", name: "Yes", kind: "allow_once" },
  ];
  const asked = { toolCall: { toolCallId, content }, options };
  return (await turn.ask(client.session.requestPermission, asked)).outcome;
}

function change(turn, toolCallId, fields) {
  return turn.update("tool_call_update", { toolCallId, ...fields });
}

function plan(turn, ...statuses) {
  const steps = ["Look", "Shout", "Count"];
  const entries = steps.map((content, i) => ({ content, priority: "medium", status: statuses[i] }));
  return turn.update("plan", { entries });
}
