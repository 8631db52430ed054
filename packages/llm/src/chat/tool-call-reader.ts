import { randomBytes } from "node:crypto";
import {
  type CallReading,
  CallSink,
  HeldTextLimit,
  passArguments,
  type Reading,
  readCallArray,
  readCallObject,
  StreamedText,
  skipSpaceBetweenCalls,
} from "./call-reading.js";
import { readPythonicCalls } from "./pythonic-calls.js";
import type { ToolCallFamily, ToolCallPiece } from "./tool-call-family.js";

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

const HERMES_OPEN = "<tool_call>";
const HERMES_CLOSE = "</tool_call>";

/** Reads `<tool_call>{…}</tool_call>`, anywhere in the text. A closing tag may be missing. */
function* readHermesCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(HERMES_OPEN)))) {
      if (!(yield* text.passUntil(HERMES_OPEN, (piece) => sink.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readCallObject(reading, true))) {
      sink.content(text.giveBack());
      continue;
    }
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(HERMES_CLOSE)) text.release();
    else text.rewind();
  }
}

const PYTHON_TAG = "<|python_tag|>";

/**
 * Reads a text that begins with calls: objects separated by `;`, `,` or space, or an array of them. Llama 3 may write
 * `<|python_tag|>` before them. The text after the calls is content.
 */
function* readJsonCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  text.hold();
  yield* text.skipSpace();
  const marked = yield* text.accept(PYTHON_TAG);
  yield* text.skipSpace();
  const isArray = (yield* text.peek()) === "[";
  if (!(yield* isArray ? readCallArray(reading, marked) : readCallObject(reading, marked))) {
    sink.content(text.giveBack());
    return;
  }
  for (;;) {
    text.hold();
    yield* text.skipSpace();
    if (!(yield* text.accept(";"))) yield* text.accept(",");
    yield* text.skipSpace();
    if (!(yield* text.more())) {
      text.release();
      return;
    }
    yield* text.accept(PYTHON_TAG);
    yield* text.skipSpace();
    if (yield* readCallObject(reading, marked)) continue;
    sink.content(text.giveBack());
    return;
  }
}

const MISTRAL_OPEN = "[TOOL_CALLS]";
const MISTRAL_CALL_ID = "[CALL_ID]";
const MISTRAL_ARGUMENTS = "[ARGS]";
const MISTRAL_NAME = /[\w.:/-]/;

/**
 * Reads `[TOOL_CALLS]` with an array of objects, or with a name and its arguments. An array at the very beginning of
 * the text also counts, because the marker is a special token that some engines leave out.
 */
function* readMistralCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  if (!(yield* readBareArray(reading))) {
    // An array without a marker that has no calls is content, and so is the text after it, up to a marker.
    sink.content(text.giveBack());
  }
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(MISTRAL_OPEN)))) {
      if (!(yield* text.passUntil(MISTRAL_OPEN, (piece) => sink.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readMarkedCalls(reading))) sink.content(text.giveBack());
  }
}

/** Reads an array of calls without a marker. True if the text begins with one, or with a marker, which stays unread. */
function* readBareArray(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "[" || (yield* text.accept(MISTRAL_OPEN))) {
    text.rewind();
    return true;
  }
  return yield* readCallArray(reading, false);
}

function* readMarkedCalls(reading: CallReading): Reading<boolean> {
  const first = yield* reading.text.peek();
  if (first === "[") return yield* readCallArray(reading, true);
  if (first === "{") return yield* readCallObject(reading, true);
  return yield* readNamedCall(reading);
}

/** Reads `name{…}`, with `[CALL_ID]` and an id, and `[ARGS]`, before the arguments. */
function* readNamedCall({ text, sink }: CallReading): Reading<boolean> {
  const name = yield* text.takeWhile(MISTRAL_NAME);
  if (name === "") return false;
  if (yield* text.accept(MISTRAL_CALL_ID)) yield* text.takeWhile(MISTRAL_NAME);
  yield* text.accept(MISTRAL_ARGUMENTS);
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "{") return false;
  sink.call(name);
  text.release();
  yield* passArguments(text, (piece) => sink.arguments(piece));
  return true;
}

const CALLS_BEGIN = "<｜tool▁calls▁begin｜>";
const CALLS_END = "<｜tool▁calls▁end｜>";
const CALL_BEGIN = "<｜tool▁call▁begin｜>";
const CALL_END = "<｜tool▁call▁end｜>";
const SEPARATOR = "<｜tool▁sep｜>";
/** Fence around the arguments of V3 and R1. */
const FENCE_BEGIN = "```json";
const FENCE_END = "```";

/**
 * Reads the calls of DeepSeek V3 and R1 (`function`, separator, name, arguments in a fence) and of V3.1 (name,
 * separator, arguments).
 */
function* readDeepseekCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(CALLS_BEGIN)))) {
      if (!(yield* text.passUntil(CALLS_BEGIN, (piece) => sink.content(piece)))) return;
    }
    while (yield* readDeepseekCall(reading)) text.hold();
    sink.content(text.giveBack());
  }
}

/** Reads one call from held text. False if none follows; the end of the calls is then read and released. */
function* readDeepseekCall({ text, sink }: CallReading): Reading<boolean> {
  yield* text.skipSpace();
  if (!(yield* text.accept(CALL_BEGIN))) {
    if (yield* text.accept(CALLS_END)) text.release();
    return false;
  }
  let name = "";
  const complete = yield* readHeader();
  if (!complete) return false;
  const isFenced = name.trim() === "function" && (yield* text.peek()) !== "{";
  if (isFenced) {
    name = yield* text.takeWhile(/[^\s`<]/);
    yield* text.skipSpace();
    if (!(yield* text.accept(FENCE_BEGIN))) return false;
    yield* text.skipSpace();
  }
  if (name.trim() === "" || (yield* text.peek()) !== "{") return false;
  sink.call(name.trim());
  text.release();
  yield* passArguments(text, (piece) => sink.arguments(piece));
  text.hold();
  yield* text.skipSpace();
  if (isFenced && (yield* text.accept(FENCE_END))) yield* text.skipSpace();
  if (yield* text.accept(CALL_END)) text.release();
  else text.rewind();
  return true;

  function* readHeader(): Reading<boolean> {
    for (;;) {
      if (yield* text.accept(SEPARATOR)) return true;
      if ((yield* text.peek()) === "") return false;
      name += text.take(1);
    }
  }
}
