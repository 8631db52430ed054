import { randomBytes } from "node:crypto";
import { CallSink } from "./call-sink.js";
import { readDeepseekCalls } from "./deepseek-calls.js";
import { readHermesCalls } from "./hermes-calls.js";
import type { CallReading } from "./json-call.js";
import { readJsonCalls } from "./json-calls.js";
import { readMistralCalls } from "./mistral-calls.js";
import { readPythonicCalls } from "./pythonic-calls.js";
import { HeldTextLimit, type Reading, StreamedText } from "./streamed-text.js";
import type { ToolCallFamily } from "./tool-call-family.js";
import type { ToolCallPiece } from "./tool-call-piece.js";

/** Finds calls of tools in a text that a model writes. */
export interface ToolCallReader {
  /** Takes the next piece of the text, and returns the pieces that are certain by now. */
  push(text: string): ToolCallPiece[];
  /** Ends the text, and returns the rest. */
  end(): ToolCallPiece[];
  /** True once a call was found: then the text ends with the finish reason `tool_calls`. */
  readonly hasCalls: boolean;
}

/** Options of {@link createToolCallReader}. */
export interface ToolCallReaderOptions {
  /** Tools of the request. Without a marker around it, only a call of one of these counts. */
  readonly tools: readonly { readonly function: { readonly name: string } }[];
  /**
   * Characters that may be held back until it is clear whether they are a call. More of them become content, and so
   * does the rest of the text. @default 65,536
   */
  readonly maxHeldCharacters?: number;
  /**
   * Makes the id of a call. @default `call_` and 24 random characters; for Mistral 9 characters, as its templates ask
   */
  readonly createId?: () => string;
}

const READERS: Readonly<Record<ToolCallFamily, (reading: CallReading) => Reading<void>>> = {
  hermes: readHermesCalls,
  llama3: readJsonCalls,
  mistral: readMistralCalls,
  pythonic: readPythonicCalls,
  deepseek: readDeepseekCalls,
  json: readJsonCalls,
};

const MAX_HELD_CHARACTERS = 65_536;
const ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Makes a reader of the calls that a model of a family writes. Names come first, then arguments as they arrive. Text
 * that is not a call is content, and so is a call that cannot be read. However the text is cut into pieces, the joined
 * result is the same.
 *
 * @example
 * ```ts
 * const reader = createToolCallReader("hermes", { tools });
 * for await (const text of answer) {
 *   for (const piece of reader.push(text)) send(piece);
 * }
 * for (const piece of reader.end()) send(piece);
 * ```
 */
export function createToolCallReader(family: ToolCallFamily, options: ToolCallReaderOptions): ToolCallReader {
  const { tools, maxHeldCharacters = MAX_HELD_CHARACTERS } = options;
  const names = new Set(tools.map((tool) => tool.function.name));
  const createId =
    options.createId ?? (family === "mistral" ? () => randomId(9) : () => `call_${randomId(24)}`);
  const text = new StreamedText(maxHeldCharacters);
  const sink = new CallSink(createId);
  let reading: Reading<void> | undefined = READERS[family]({ text, sink, isTool: (name) => names.has(name) });

  const read = (): ToolCallPiece[] => {
    try {
      if (reading?.next().done) reading = undefined;
    } catch (error) {
      if (!(error instanceof HeldTextLimit)) throw error;
      reading = undefined;
      sink.content(text.giveBack());
    }
    if (reading === undefined) sink.content(text.take(text.unread.length));
    return sink.take();
  };
  return {
    push(piece) {
      text.append(piece);
      return read();
    },
    end() {
      text.close();
      return read();
    },
    get hasCalls() {
      return sink.hasCalls;
    },
  };
}

function randomId(length: number): string {
  // 256 is not a multiple of 62: the first characters are a little more frequent, which does no harm in an id.
  return Array.from(randomBytes(length), (byte) => ALPHANUMERIC[byte % ALPHANUMERIC.length]).join("");
}
