import { randomUUID } from "node:crypto";
import { TritonError } from "@tritonjs/protocol";
import type { ToolCallDelta } from "../chat/tool-calls/tool-call-piece.js";
import type { YieldedToolCall } from "./yielded-piece.js";

/** Numbers the calls of tools in one answer, and collects their changes until a response takes them. */
export class ToolCallDeltas {
  readonly #modelName: string;
  /** Indices of the calls that have begun. */
  readonly #begun = new Set<number>();
  #last = -1;
  #pending: ToolCallDelta[] = [];

  constructor(modelName: string) {
    this.#modelName = modelName;
  }

  /** True once a call has begun. */
  get any(): boolean {
    return this.#begun.size > 0;
  }

  /** True if there are changes that no response has taken. */
  get waiting(): boolean {
    return this.#pending.length > 0;
  }

  /** @throws TritonError INTERNAL for a piece that continues a call which has not begun. */
  add(piece: YieldedToolCall): void {
    const { name, index = name === undefined ? this.#last : this.#next() } = piece;
    const given = piece.arguments;
    const text = given === undefined || typeof given === "string" ? given : JSON.stringify(given);
    this.#last = index;
    if (this.#begun.has(index)) {
      this.#pending.push({ index, function: { ...(text !== undefined && { arguments: text }) } });
      return;
    }
    if (name === undefined) {
      throw new TritonError(
        "INTERNAL",
        `model '${this.#modelName}': cannot use a piece of textGenerator: toolCall: expected a name in the first ` +
          "piece of a call, got none",
        { reason: "INVALID_OUTPUT" },
      );
    }
    this.#begun.add(index);
    const id = piece.id ?? `call_${randomUUID().replaceAll("-", "")}`;
    this.#pending.push({ index, id, type: "function", function: { name, arguments: text ?? "" } });
  }

  /** Adds a change that was found in the text. */
  addDelta(delta: ToolCallDelta): void {
    this.#begun.add(delta.index);
    this.#pending.push(delta);
  }

  /** The changes since the last call, with consecutive changes of one call joined. */
  take(): readonly ToolCallDelta[] {
    const deltas: ToolCallDelta[] = [];
    for (const delta of this.#pending) {
      const at = deltas.findIndex(({ index }) => index === delta.index);
      if (at < 0) deltas.push(delta);
      else deltas[at] = joined(deltas[at]!, delta);
    }
    this.#pending = [];
    return deltas;
  }

  #next(): number {
    return this.#begun.size === 0 ? 0 : Math.max(...this.#begun) + 1;
  }
}

function joined(first: ToolCallDelta, second: ToolCallDelta): ToolCallDelta {
  const text = (first.function.arguments ?? "") + (second.function.arguments ?? "");
  return { ...first, function: { ...first.function, arguments: text } };
}
