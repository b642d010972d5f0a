// The prompt `work` of official-agent-v2.mjs, which uses every feature once.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { text } from "./peer.mjs";

const { client } = acp.methods;

export async function work(turn) {
  const path = `${turn.session.cwd}/note.txt`;
  const thought = turn.newId("message");
  await turn.update("agent_thought_chunk", { messageId: thought, content: text("First I look.") });
  for (const word of ["Reading ", "the ", "note."]) await turn.say(word);
  await plan(turn, "in_progress", "pending", "pending");
  await turn.update("available_commands_update", {
    availableCommands: [{ type: "command", name: "work", description: "Do one of everything" }],
  });

  const locations = [{ path, line: 1 }];
  await change(turn, "read", { title: "Read note.txt", kind: "read", status: "in_progress", locations });
  const old = readFileSync(path, "utf8");
  // Send the content in pieces, and then the rest of the call.
  for (const line of old.split(/(?<=\n)/)) {
    const content = { type: "content", content: text(line) };
    await turn.update("tool_call_content_chunk", { toolCallId: "read", content });
  }
  await change(turn, "read", { status: "completed", rawOutput: { bytes: old.length } });

  const loud = old.toUpperCase();
  const diff = asDiff(path, old, loud);
  await change(turn, "edit", { title: "Shout", kind: "edit", status: "pending", locations });
  const answer = await askPermission(turn, "Shout?", { toolCallId: "edit", content: [diff] });
  if (answer.optionId !== "yes") {
    await change(turn, "edit", { status: "failed" });
    await turn.say(" I was not allowed to.");
    return "end_turn";
  }
  await change(turn, "edit", { status: "in_progress" });
  writeFileSync(path, loud);
  await change(turn, "edit", { status: "completed", content: [diff] });
  await plan(turn, "completed", "in_progress", "pending");

  await runCommand(turn, "run", "Count", "cat note.txt; printf 'h\\303\\251llo\\n' >&2; exit 3");
  const now = Promise.resolve();
  await runCommand(turn, "kill", "Wait", "exec sleep 600", now);
  await plan(turn, "completed", "completed", "completed");

  const cost = { amount: 0.25, currency: "EUR" };
  await turn.update("usage_update", { used: 1200, size: 200_000, cost });
  turn.session.mode = "code";
  await turn.settings();
  await turn.update("session_info_update", { title: "A loud note" });
  // The next text is a separate message. Send it as a whole, and then append to it.
  turn.message = turn.newId("message");
  await turn.update("agent_message", { messageId: turn.message, content: [text("Do")] });
  await turn.say("ne.");
  return "end_turn";
}

/** Runs a command, and shows it and what it prints in a tool call; ends it when told to. */
export async function runCommand(turn, toolCallId, title, script, stop) {
  const terminalId = turn.newId("terminal");
  const { cwd } = turn.session;
  await turn.update("terminal_update", { terminalId, command: script, cwd });
  const content = [{ type: "terminal", terminalId }];
  await change(turn, toolCallId, { title, kind: "execute", status: "in_progress", content });

  const child = spawn("sh", ["-c", script], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  for (const pipe of [child.stdout, child.stderr]) {
    pipe.on("data", (bytes) => {
      // Send the output byte by byte, so that longer characters are split.
      for (const byte of bytes) {
        const data = Buffer.of(byte).toString("base64");
        void turn.update("terminal_output_chunk", { terminalId, data });
      }
    });
  }
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  void stop?.then(() => child.kill("SIGKILL"));
  const exitStatus = await ended;
  await turn.update("terminal_update", { terminalId, exitStatus });
  await change(turn, toolCallId, { status: exitStatus.signal ? "cancelled" : "completed" });
  return exitStatus;
}

/** What became of the question. */
export async function askPermission(turn, title, toolCall) {
  const options = [
    { optionId: "no", name: "No", kind: "reject_once" },
    { optionId: "yes", name: "Yes", kind: "allow_once" },
  ];
  const asked = { title, subject: { type: "tool_call", toolCall }, options };
  return (await turn.ask(client.session.requestPermission, asked)).outcome;
}

/** A file that becomes another text, line by line: as the draft says, with absolute paths. */
function asDiff(path, old, text) {
  const lines = (sign, text) => text.replace(/^(?!$)/gm, sign);
  const count = (text) => text.split("\n").length - 1;
  const patch = [
    `diff --git ${path} ${path}\n--- ${path}\n+++ ${path}\n`,
    `@@ -1,${count(old)} +1,${count(text)} @@\n${lines("-", old)}${lines("+", text)}`,
  ];
  return {
    type: "diff",
    changes: [{ operation: "modify", path, fileType: "text" }],
    patch: { format: "git_patch", text: patch.join("") },
  };
}

function change(turn, toolCallId, fields) {
  return turn.update("tool_call_update", { toolCallId, ...fields });
}

function plan(turn, ...statuses) {
  const steps = ["Look", "Shout", "Count"];
  const entries = steps.map((content, i) => ({ content, priority: "medium", status: statuses[i] }));
  return turn.update("plan_update", { plan: { type: "items", planId: "steps", entries } });
}
