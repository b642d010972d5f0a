// What the programs on the official TypeScript SDK have in common.

import { Readable, Writable } from "node:stream";

/** What is passed to the SDK as a stream. */
export function stream(acp, output, input) {
  return acp.ndJsonStream(Writable.toWeb(output), Readable.toWeb(input));
}

/** One line: what happened, and the message about it. */
export function print(what, message) {
  process.stdout.write(`${JSON.stringify({ [what]: message ?? {} })}\n`);
}

/** An error as a message: what the SDK throws for an error answer has its code. */
export function asMessage(error) {
  const code = error?.code ?? -32603;
  return { code, message: error?.message ?? String(error), data: error?.data };
}

/** The words a prompt has. */
export function textOf(prompt) {
  return prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** A block of content with a text. */
export function text(text) {
  return { type: "text", text };
}

/**
 * Lets all that has arrived already reach its handlers. The SDK resumes who waits for an answer before the
 * handlers of notifications that came ahead of it: each handler takes a few turns of the loop's queue.
 */
export function arrived() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Something that happens once, and can be waited for. */
export class Flag {
  constructor() {
    this.happened = new Promise((resolve) => {
      this.raise = resolve;
    });
  }
}
