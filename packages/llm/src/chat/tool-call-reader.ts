import { randomBytes } from "node:crypto";
import {
  CallReading,
  HeldTextLimit,
  passArguments,
  type Reading,
  readCallArray,
  readCallObject,
  StreamedText,
  skipSpaceBetweenCalls,
} from "./call-reading.js";
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
  const calls = new CallReading(text, names, createId);
  let reading: Reading<void> | undefined = READERS[family](calls);

  const read = (): ToolCallPiece[] => {
    try {
      if (reading?.next().done) reading = undefined;
    } catch (error) {
      if (!(error instanceof HeldTextLimit)) throw error;
      reading = undefined;
      calls.content(text.giveBack());
    }
    if (reading === undefined) calls.content(text.take(text.unread.length));
    return calls.take();
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
      return calls.hasCalls;
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
  const { text } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(HERMES_OPEN)))) {
      if (!(yield* text.passUntil(HERMES_OPEN, (piece) => reading.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readCallObject(reading, true))) {
      reading.content(text.giveBack());
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
  const { text } = reading;
  text.hold();
  yield* text.skipSpace();
  const marked = yield* text.accept(PYTHON_TAG);
  yield* text.skipSpace();
  const isArray = (yield* text.peek()) === "[";
  if (!(yield* isArray ? readCallArray(reading, marked) : readCallObject(reading, marked))) {
    reading.content(text.giveBack());
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
    reading.content(text.giveBack());
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
  const { text } = reading;
  if (!(yield* readBareArray(reading))) {
    // An array without a marker that has no calls is content, and so is the text after it, up to a marker.
    reading.content(text.giveBack());
  }
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(MISTRAL_OPEN)))) {
      if (!(yield* text.passUntil(MISTRAL_OPEN, (piece) => reading.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readMarkedCalls(reading))) reading.content(text.giveBack());
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
function* readNamedCall(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  const name = yield* text.takeWhile(MISTRAL_NAME);
  if (name === "") return false;
  if (yield* text.accept(MISTRAL_CALL_ID)) yield* text.takeWhile(MISTRAL_NAME);
  yield* text.accept(MISTRAL_ARGUMENTS);
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "{") return false;
  reading.call(name);
  text.release();
  yield* passArguments(text, (piece) => reading.arguments(piece));
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
  const { text } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(CALLS_BEGIN)))) {
      if (!(yield* text.passUntil(CALLS_BEGIN, (piece) => reading.content(piece)))) return;
    }
    while (yield* readDeepseekCall(reading)) text.hold();
    reading.content(text.giveBack());
  }
}

/** Reads one call from held text. False if none follows; the end of the calls is then read and released. */
function* readDeepseekCall(reading: CallReading): Reading<boolean> {
  const { text } = reading;
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
  reading.call(name.trim());
  text.release();
  yield* passArguments(text, (piece) => reading.arguments(piece));
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

const START = "<|python_start|>";
const END = "<|python_end|>";
const NAME = /[\w.]/;
const PARAMETER = /\w/;

/**
 * Reads a text that begins with `[name(key=value), …]`, and passes the arguments on as JSON. The text after the calls
 * is content. Only names of tools count: any other list is an answer.
 */
function* readPythonicCalls(reading: CallReading): Reading<void> {
  const { text } = reading;
  text.hold();
  yield* text.skipSpace();
  yield* text.accept(START);
  yield* text.skipSpace();
  if (!(yield* text.accept("["))) {
    reading.content(text.giveBack());
    return;
  }
  yield* text.skipSpace();
  while (yield* readPythonicCall(reading)) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept("]")) {
      yield* readEnd(reading);
      return;
    }
    if (!(yield* text.accept(","))) break;
    yield* text.skipSpace();
  }
  reading.content(text.giveBack());
}

/** Reads the marker after the calls, if there is one, and the space before it or before the end of the text. */
function* readEnd({ text }: CallReading): Reading<void> {
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.accept(END)) || !(yield* text.more())) text.release();
  else text.rewind();
}

/** Reads `name(key=value)` from held text. */
function* readPythonicCall(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  const name = yield* text.takeWhile(NAME);
  yield* text.skipSpace();
  if (!reading.isTool(name) || !(yield* text.accept("("))) return false;
  reading.call(name);
  text.release();
  reading.arguments("{");
  for (let count = 0; ; count++) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(")")) break;
    const key = yield* text.takeWhile(PARAMETER);
    yield* text.skipSpace();
    if (key === "" || !(yield* text.accept("="))) return false;
    yield* text.skipSpace();
    reading.arguments(`${count > 0 ? ", " : ""}${JSON.stringify(key)}: `);
    text.release();
    text.hold();
    if (!(yield* passValue())) return false;
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(",")) continue;
    if (!(yield* text.accept(")"))) return false;
    break;
  }
  text.release();
  reading.arguments("}");
  return true;

  /** Strings pass as they come. Other values are held until they are whole, so that a broken one becomes content. */
  function* passValue(): Reading<boolean> {
    const first = yield* text.peek();
    if (first === '"' || first === "'") {
      text.release();
      return yield* passPythonLiteral(text, (json) => reading.arguments(json));
    }
    let value = "";
    const complete = yield* passPythonLiteral(text, (json) => {
      value += json;
    });
    if (complete) reading.arguments(value);
    return complete;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  True: "true",
  False: "false",
  None: "null",
  true: "true",
  false: "false",
  null: "null",
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  a: "\x07",
  "0": "\0",
  "\n": "",
};
const CODES: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
/** Nesting of lists and dictionaries. Deeper values are not read. */
const MAX_DEPTH = 64;

/** Reads a Python literal and passes it on as JSON as it comes. False if there is none, or the text ends within it. */
function* passPythonLiteral(text: StreamedText, pass: (json: string) => void, depth = 0): Reading<boolean> {
  const first = yield* text.peek();
  if (depth > MAX_DEPTH) return false;
  if (first === '"' || first === "'") return yield* passString(text, pass);
  if (first === "[" || first === "(") return yield* passList(text, pass, depth);
  if (first === "{") return yield* passDictionary(text, pass, depth);
  const word = yield* text.takeWhile(/[\w.+-]/);
  const json = WORDS[word] ?? jsonNumber(word);
  if (json === undefined) return false;
  pass(json);
  return true;
}

/** JSON of a Python number. One that JSON spells alike stays as it is, whatever its length. */
function jsonNumber(word: string): string | undefined {
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(word)) return word;
  if (!/^[+-]?[\d.]/.test(word)) return undefined;
  const value = Number(word.replaceAll("_", ""));
  return Number.isFinite(value) ? String(value) : undefined;
}

function* passList(text: StreamedText, pass: (json: string) => void, depth: number): Reading<boolean> {
  const end = text.take(1) === "[" ? "]" : ")";
  pass("[");
  if (!(yield* passItems(text, end, pass, () => passPythonLiteral(text, pass, depth + 1)))) return false;
  pass("]");
  return true;
}

function* passDictionary(text: StreamedText, pass: (json: string) => void, depth: number): Reading<boolean> {
  text.take(1);
  pass("{");
  if (!(yield* passItems(text, "}", pass, passEntry))) return false;
  pass("}");
  return true;

  function* passEntry(): Reading<boolean> {
    if (!(yield* passKey(text, pass, depth))) return false;
    yield* text.skipSpace();
    if (!(yield* text.accept(":"))) return false;
    pass(": ");
    yield* text.skipSpace();
    return yield* passPythonLiteral(text, pass, depth + 1);
  }
}

/** Reads items between commas up to `end`; a comma may follow the last one. */
function* passItems(
  text: StreamedText,
  end: string,
  pass: (json: string) => void,
  passItem: () => Reading<boolean>,
): Reading<boolean> {
  for (let count = 0; ; count++) {
    yield* text.skipSpace();
    if (yield* text.accept(end)) return true;
    if (count > 0) pass(", ");
    if (!(yield* passItem())) return false;
    yield* text.skipSpace();
    if (!(yield* text.accept(","))) return yield* text.accept(end);
  }
}

/** Keys of JSON are strings: those that are numbers or words in Python get quotes. */
function* passKey(text: StreamedText, pass: (json: string) => void, depth: number): Reading<boolean> {
  const first = yield* text.peek();
  if (first === '"' || first === "'") return yield* passString(text, pass);
  if (first === "[" || first === "(" || first === "{") return false;
  return yield* passPythonLiteral(text, (json) => pass(JSON.stringify(json)), depth + 1);
}

function* passString(text: StreamedText, pass: (json: string) => void): Reading<boolean> {
  const quote = text.take(1);
  const plain = quote === '"' ? /^[^"\\]+/ : /^[^'\\]+/;
  pass('"');
  while (yield* text.more()) {
    const run = plain.exec(text.unread)?.[0];
    if (run !== undefined) {
      const read = text.take(run.length);
      const half = /[\ud800-\udbff]$/.test(read) && /[\udc00-\udfff]/.test(yield* text.peek());
      // JSON.stringify would write half of a character as an escape of its own.
      pass(jsonCharacters(half ? read + text.take(1) : read));
      continue;
    }
    if (text.take(1) === quote) {
      pass('"');
      return true;
    }
    if (!(yield* text.more())) return false;
    pass(jsonCharacters(yield* readEscape(text)));
  }
  return false;
}

function jsonCharacters(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function* readEscape(text: StreamedText): Reading<string> {
  const character = text.take(1);
  const length = CODES[character];
  if (length === undefined) {
    // Python keeps the backslash of an escape that it does not know.
    return ESCAPES[character] ?? (/["'\\]/.test(character) ? character : `\\${character}`);
  }
  let code = "";
  while (code.length < length && /[0-9a-fA-F]/.test(yield* text.peek())) code += text.take(1);
  const value = Number.parseInt(code, 16);
  if (code.length < length || value > 0x10ffff) return `\\${character}${code}`;
  return String.fromCodePoint(value);
}
