import { invalidField } from "../errors/openai-error.js";
import type { Fields } from "./fields.js";

/** Whether the answer is streamed, and how. */
export interface StreamOptions {
  readonly stream: boolean;
  /** Whether the last chunk has the numbers of tokens. */
  readonly includeUsage: boolean;
}

/** Reads `stream` and `stream_options`. */
export function readStreamOptions(fields: Fields): StreamOptions {
  const stream = fields.boolean("stream") ?? false;
  const options = fields.object("stream_options");
  if (options !== undefined && !stream) {
    throw invalidField("stream_options", "`stream_options` can only be used when `stream` is True");
  }
  return { stream, includeUsage: options?.boolean("include_usage") ?? false };
}
