import type { CallReading, Reading, StreamedText } from "./call-reading.js";

const SCALAR = /[^\s,;\]}]/;
const ESCAPES: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/**
 * Reads a JSON value and passes its characters on as they come. It follows brackets and strings to find the end, and
 * does not check the text between them. False if there is no value, or the text ends within it.
 */
function* passJsonValue(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  const first = yield* text.peek();
  if (first === "{" || first === "[" || first === '"') return yield* passNested(text, pass);
  const scalar = yield* text.takeWhile(SCALAR);
  pass(scalar);
  return scalar !== "";
}

function* passNested(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  let depth = 0;
  let inString = false;
  let escaped = false;
  while (yield* text.more()) {
    const unread = text.unread;
    let at = 0;
    while (at < unread.length) {
      const character = unread[at++];
      if (escaped) escaped = false;
      else if (inString) {
        if (character === "\\") escaped = true;
        else if (character === '"') inString = false;
      } else if (character === '"') inString = true;
      else if (character === "{" || character === "[") depth++;
      else if (character === "}" || character === "]") depth--;
      if (depth === 0 && !inString) {
        pass(text.take(at));
        return true;
      }
    }
    pass(text.take(at));
  }
  return false;
}

/** Reads a JSON string and returns its value. Undefined if there is none, or the text ends within it. */
function* readJsonString(text: StreamedText): Reading<string | undefined> {
  let value = "";
  const complete = yield* passJsonString(text, (piece) => {
    value += piece;
  });
  return complete ? value : undefined;
}

/** Reads a JSON string and passes its value on as it comes, never half of a character. */
function* passJsonString(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  if (!(yield* text.accept('"'))) return false;
  let half = "";
  const passWhole = (piece: string) => {
    const joined = half + piece;
    const last = joined.charCodeAt(joined.length - 1);
    half = last >= 0xd800 && last < 0xdc00 ? joined.slice(-1) : "";
    const whole = joined.slice(0, joined.length - half.length);
    if (whole !== "") pass(whole);
  };
  while (yield* text.more()) {
    const plain = /^[^"\\]+/.exec(text.unread)?.[0];
    if (plain !== undefined) {
      passWhole(text.take(plain.length));
      continue;
    }
    if (text.take(1) === '"') {
      if (half !== "") pass(half);
      return true;
    }
    if (!(yield* text.more())) break;
    passWhole(yield* readEscape(text));
  }
  if (half !== "") pass(half);
  return false;
}

function* readEscape(text: StreamedText): Reading<string> {
  const character = text.take(1);
  if (character !== "u") return ESCAPES[character] ?? character;
  let code = "";
  while (code.length < 4 && /[0-9a-fA-F]/.test(yield* text.peek())) code += text.take(1);
  return code.length === 4 ? String.fromCharCode(Number.parseInt(code, 16)) : `u${code}`;
}

/** Members of a call that have its name and its arguments, by the words of different models. */
const NAME_KEYS: ReadonlySet<string> = new Set(["name", "tool_name"]);
const ARGUMENTS_KEYS: ReadonlySet<string> = new Set(["arguments", "parameters"]);

/**
 * Reads `{"name": …, "arguments": {…}}` from held text. `marked` tells that a marker announced the call; otherwise an
 * object counts as a call only if it has arguments and the name of a tool. Returns false if it is not a call: then the
 * text is still held. Once the name and the arguments have begun, it is a call, and the text is released.
 */
function* readCallObject(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text } = reading;
  if (!(yield* text.accept("{"))) return false;
  let name: string | undefined;
  let early: string | undefined;
  let begun = false;
  const begin = (found: string) => {
    reading.call(found);
    text.release();
    begun = true;
  };
  for (;;) {
    yield* text.skipSpace();
    if (yield* text.accept("}")) break;
    const key = yield* readJsonString(text);
    yield* text.skipSpace();
    if (key === undefined || !(yield* text.accept(":"))) return begun;
    yield* text.skipSpace();
    if (NAME_KEYS.has(key) && name === undefined) {
      name = yield* readJsonString(text);
      if (name === undefined || !(marked || reading.isTool(name))) return begun;
      if (early !== undefined) {
        begin(name);
        reading.arguments(early);
      }
    } else if (ARGUMENTS_KEYS.has(key) && !begun && early === undefined) {
      if (name !== undefined) {
        begin(name);
        if (!(yield* passArguments(text, (piece) => reading.arguments(piece)))) return true;
      } else {
        let held = "";
        const hold = (piece: string) => {
          held += piece;
        };
        if (!(yield* passArguments(text, hold))) return false;
        early = held;
      }
    } else if (!(yield* passJsonValue(text, () => {}))) return begun;
    yield* text.skipSpace();
    if (yield* text.accept("}")) break;
    if (!(yield* text.accept(","))) return begun;
  }
  if (begun) return true;
  if (name === undefined || !marked) return false;
  begin(name);
  reading.arguments("{}");
  return true;
}

/** Reads the arguments of a call: an object, its JSON text in a string, or null for none. */
export function* passArguments(text: StreamedText, pass: (piece: string) => void): Reading<boolean> {
  const first = yield* text.peek();
  if (first === '"') return yield* passJsonString(text, pass);
  if (first === "{" || first === "[") return yield* passJsonValue(text, pass);
  let scalar = "";
  const complete = yield* passJsonValue(text, (piece) => {
    scalar += piece;
  });
  pass(scalar === "null" ? "{}" : scalar);
  return complete;
}

/**
 * Reads `[{…}, {…}]` from held text. False if it does not begin with a call. The text after the last readable call
 * becomes content.
 */
export function* readCallArray(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text } = reading;
  if (!(yield* text.accept("["))) return false;
  yield* text.skipSpace();
  if (!(yield* readCallObject(reading, marked))) return false;
  for (;;) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept("]")) break;
    if (yield* text.accept(",")) {
      yield* text.skipSpace();
      if (yield* readCallObject(reading, marked)) continue;
    }
    reading.content(text.giveBack());
    return true;
  }
  text.release();
  return true;
}

/** Holds the text from here on, and skips what may stand between two calls: space, `;` or `,`. */
export function* holdSeparator({ text }: CallReading): Reading<void> {
  text.hold();
  yield* text.skipSpace();
  if (!(yield* text.accept(";"))) yield* text.accept(",");
  yield* text.skipSpace();
}

/** Reads an array of calls, or calls one after the other, perhaps with `;` or `,` between them, from held text. */
export function* readCallObjects(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text } = reading;
  if ((yield* text.peek()) === "[") return yield* readCallArray(reading, marked);
  if (!(yield* readCallObject(reading, marked))) return false;
  for (;;) {
    yield* holdSeparator(reading);
    if ((yield* text.peek()) === "{" && (yield* readCallObject(reading, marked))) continue;
    text.rewind();
    return true;
  }
}

/** Reads `[{"name": {…}}, …]` from held text: objects whose only member is the call. */
export function* readKeyedCalls(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  if (!(yield* text.accept("["))) return false;
  for (let count = 0; ; count++) {
    yield* text.skipSpace();
    if (count > 0 && (yield* text.accept("]"))) break;
    if (count > 0 && (yield* text.accept(","))) yield* text.skipSpace();
    const name = (yield* text.accept("{")) ? yield* readKey(text) : undefined;
    if (name === undefined) return count > 0 && giveBack();
    reading.call(name);
    text.release();
    if (!(yield* passArguments(text, (piece) => reading.arguments(piece)))) return true;
    text.hold();
    yield* text.skipSpace();
    if (!(yield* text.accept("}"))) return giveBack();
  }
  text.release();
  return true;

  function giveBack(): true {
    reading.content(text.giveBack());
    return true;
  }
}

/** Reads the name of a member, and the colon after it. */
function* readKey(text: StreamedText): Reading<string | undefined> {
  yield* text.skipSpace();
  const key = yield* readJsonString(text);
  yield* text.skipSpace();
  if (!(yield* text.accept(":"))) return undefined;
  yield* text.skipSpace();
  return key;
}
