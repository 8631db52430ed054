import type { CallReading, Reading, StreamedText } from "./call-reading.js";

const START = "<|python_start|>";
const END = "<|python_end|>";
const NAME = /[\w.]/;
const PARAMETER = /\w/;

/**
 * Reads a text that begins with `[name(key=value), …]`, and passes the arguments on as JSON. The text after the calls
 * is content. Only names of tools count: any other list is an answer.
 */
export function* readPythonicCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  text.hold();
  yield* text.skipSpace();
  yield* text.accept(START);
  yield* text.skipSpace();
  if (!(yield* text.accept("["))) {
    sink.content(text.giveBack());
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
  sink.content(text.giveBack());
}

/** Reads the marker after the calls, if there is one, and the space before it or before the end of the text. */
function* readEnd({ text }: CallReading): Reading<void> {
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.accept(END)) || !(yield* text.more())) text.release();
  else text.rewind();
}

/** Reads `name(key=value)` from held text. */
function* readPythonicCall({ text, sink, isTool }: CallReading): Reading<boolean> {
  const name = yield* text.takeWhile(NAME);
  yield* text.skipSpace();
  if (!isTool(name) || !(yield* text.accept("("))) return false;
  sink.call(name);
  text.release();
  sink.arguments("{");
  for (let count = 0; ; count++) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(")")) break;
    const key = yield* text.takeWhile(PARAMETER);
    yield* text.skipSpace();
    if (key === "" || !(yield* text.accept("="))) return false;
    yield* text.skipSpace();
    sink.arguments(`${count > 0 ? ", " : ""}${JSON.stringify(key)}: `);
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
  sink.arguments("}");
  return true;

  /** Strings pass as they come. Other values are held until they are whole, so that a broken one becomes content. */
  function* passValue(): Reading<boolean> {
    const first = yield* text.peek();
    if (first === '"' || first === "'") {
      text.release();
      return yield* passPythonLiteral(text, (json) => sink.arguments(json));
    }
    let value = "";
    const complete = yield* passPythonLiteral(text, (json) => {
      value += json;
    });
    if (complete) sink.arguments(value);
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
  for (let count = 0; ; count++) {
    yield* text.skipSpace();
    if (yield* text.accept(end)) break;
    if (count > 0) pass(", ");
    if (!(yield* passPythonLiteral(text, pass, depth + 1))) return false;
    yield* text.skipSpace();
    if (yield* text.accept(",")) continue;
    if (!(yield* text.accept(end))) return false;
    break;
  }
  pass("]");
  return true;
}

function* passDictionary(text: StreamedText, pass: (json: string) => void, depth: number): Reading<boolean> {
  text.take(1);
  pass("{");
  for (let count = 0; ; count++) {
    yield* text.skipSpace();
    if (yield* text.accept("}")) break;
    if (count > 0) pass(", ");
    if (!(yield* passKey(text, pass, depth))) return false;
    yield* text.skipSpace();
    if (!(yield* text.accept(":"))) return false;
    pass(": ");
    yield* text.skipSpace();
    if (!(yield* passPythonLiteral(text, pass, depth + 1))) return false;
    yield* text.skipSpace();
    if (yield* text.accept(",")) continue;
    if (!(yield* text.accept("}"))) return false;
    break;
  }
  pass("}");
  return true;
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
