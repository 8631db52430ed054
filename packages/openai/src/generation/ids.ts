import { randomBytes } from "node:crypto";

/** Makes an id with OpenAI's prefix of its kind: `chatcmpl-`, `call_`. */
export function newId(prefix: string): string {
  return prefix + randomBytes(16).toString("hex");
}

/** The current time as OpenAI writes it, in seconds. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
