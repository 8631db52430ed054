import { type CallReading, jsonCharacters, type Reading, StreamedText } from "./call-reading.js";

const NAME = /[\w.]/;
const PARAMETER = /\w/;

/**
 * Reads calls in Python's syntax from held text, and passes their arguments on as JSON: `[name(key=value), …]`, or one
 * call in each line. False if it does not begin with a call. The text after the last readable call becomes content.
 */
export function* readPythonCalls(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text } = reading;
  yield* text.skipSpace();
  const isList = yield* text.accept("[");
  if (!isList && !marked) return false;
  yield* text.skipSpace();
  if (!(yield* readPythonCall(reading, marked))) return false;
  for (;;) {
    text.hold();
    yield* text.skipSpace();
    if (isList && (yield* text.accept("]"))) {
      text.release();
      return true;
    }
    if (isList && !(yield* text.accept(","))) return giveBack();
    if (!isList && !NAME.test(yield* text.peek())) {
      text.rewind();
      return true;
    }
    yield* text.skipSpace();
    if (!(yield* readPythonCall(reading, marked))) return giveBack();
  }

  function giveBack(): true {
    reading.content(text.giveBack());
    return true;
  }
}

/** Reads `name(key=value)` from held text. Without a marker before it, only the name of a tool counts. */
function* readPythonCall(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text } = reading;
  const name = yield* text.takeWhile(NAME);
  yield* text.skipSpace();
  if (name === "" || !(marked || reading.isTool(name)) || !(yield* text.accept("("))) return false;
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

/** JSON of a text that is a Python literal as a whole; undefined for any other text. */
export function jsonOfPython(written: string): string | undefined {
  const text = new StreamedText(written.length);
  text.append(written);
  text.close();
  let json = "";
  const { value } = passPythonLiteral(text, (piece) => {
    json += piece;
  }).next();
  return value === true && text.unread === "" ? json : undefined;
}

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
