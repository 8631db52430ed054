import type { ToolCallPiece } from "./tool-call-family.js";

/**
 * A reader that waits for text: it yields where the text ends for now, and is resumed when more text has arrived or the
 * text has ended.
 */
export type Reading<T> = Generator<undefined, T, undefined>;

export class HeldTextLimit extends Error {}

const SPACE = /\s/;

/**
 * Text that arrives in pieces. Readers may hold it: held text can still be given back, so that text which looked like a
 * call and is not one becomes content.
 */
export class StreamedText {
  #buffer = "";
  #at = 0;
  #heldFrom: number | undefined;
  #closed = false;

  /** `limit` is the number of characters that may be held. */
  constructor(readonly limit: number) {}

  append(text: string): void {
    const kept = this.#heldFrom ?? this.#at;
    this.#buffer = this.#buffer.slice(kept) + text;
    this.#at -= kept;
    if (this.#heldFrom !== undefined) this.#heldFrom = 0;
  }

  close(): void {
    this.#closed = true;
  }

  /** Begins to hold the text from here. */
  hold(): void {
    this.#heldFrom = this.#at;
  }

  /** Ends holding: the text that was read cannot be given back. */
  release(): void {
    this.#heldFrom = undefined;
  }

  /** Ends holding, and returns the text that was read meanwhile. */
  giveBack(): string {
    const text = this.#heldFrom === undefined ? "" : this.#buffer.slice(this.#heldFrom, this.#at);
    this.#heldFrom = undefined;
    return text;
  }

  /** Ends holding, and goes back to where it began. */
  rewind(): void {
    this.#at = this.#heldFrom ?? this.#at;
    this.#heldFrom = undefined;
  }

  /** Characters that have arrived and are not read. */
  get unread(): string {
    return this.#buffer.slice(this.#at);
  }

  take(length: number): string {
    const text = this.#buffer.slice(this.#at, this.#at + length);
    this.#at += text.length;
    if (this.#heldFrom !== undefined && this.#at - this.#heldFrom > this.limit) throw new HeldTextLimit();
    return text;
  }

  /** Waits until an unread character is there. False at the end of the text. */
  *more(): Reading<boolean> {
    while (this.#at >= this.#buffer.length) {
      if (this.#closed) return false;
      yield;
    }
    return true;
  }

  /** Waits for text beyond the text that has arrived. False at the end of the text. */
  *further(): Reading<boolean> {
    if (this.#closed) return false;
    yield;
    return true;
  }

  /** The next character, unread; empty at the end of the text. */
  *peek(): Reading<string> {
    return (yield* this.more()) ? (this.#buffer[this.#at] as string) : "";
  }

  *accept(literal: string): Reading<boolean> {
    for (;;) {
      const next = this.#buffer.slice(this.#at, this.#at + literal.length);
      if (next === literal) {
        this.take(literal.length);
        return true;
      }
      if (!literal.startsWith(next) || !(yield* this.further())) return false;
    }
  }

  *skipSpace(): Reading<void> {
    for (;;) {
      const next = yield* this.peek();
      if (next === "" || !SPACE.test(next)) return;
      this.take(1);
    }
  }

  /** Reads the characters that fit `pattern`, a pattern for one character. */
  *takeWhile(pattern: RegExp): Reading<string> {
    let text = "";
    for (;;) {
      const next = yield* this.peek();
      if (next === "" || !pattern.test(next)) return text;
      text += this.take(1);
    }
  }

  /**
   * Reads up to and with `marker`, and passes the text before it on as it comes. The marker is held. False if the text
   * ends without it.
   */
  *passUntil(marker: string, pass: (text: string) => void): Reading<boolean> {
    for (;;) {
      const unread = this.unread;
      const found = unread.indexOf(marker);
      if (found !== -1) {
        pass(this.take(found));
        this.hold();
        this.take(marker.length);
        return true;
      }
      pass(this.take(unread.length - beginningAtEnd(unread, marker)));
      if (!(yield* this.further())) {
        pass(this.take(this.unread.length));
        return false;
      }
    }
  }
}

/** Number of characters at the end of `text` that may be the beginning of `marker`. */
function beginningAtEnd(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

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

/** A text in which readers look for calls. Collects the content and the calls that they find, in order. */
export class CallReading {
  #pieces: ToolCallPiece[] = [];
  #content = "";
  #arguments = "";
  #index = -1;

  /** @param tools names of the tools of the request */
  constructor(
    readonly text: StreamedText,
    private readonly tools: ReadonlySet<string>,
    private readonly createId: () => string,
  ) {}

  isTool(name: string): boolean {
    return this.tools.has(name);
  }

  get hasCalls(): boolean {
    return this.#index >= 0;
  }

  content(text: string): void {
    if (text === "") return;
    this.#flushArguments();
    this.#content += text;
  }

  call(name: string): void {
    this.#flushArguments();
    this.#flushContent();
    this.#index++;
    const id = this.createId();
    this.#pieces.push({ index: this.#index, id, type: "function", function: { name, arguments: "" } });
  }

  /** Adds to the arguments of the call that began last. */
  arguments(text: string): void {
    this.#flushContent();
    this.#arguments += text;
  }

  /** Takes the pieces collected since the last call, with neighbouring texts joined. */
  take(): ToolCallPiece[] {
    this.#flushContent();
    this.#flushArguments();
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #flushContent(): void {
    if (this.#content !== "") this.#pieces.push({ content: this.#content });
    this.#content = "";
  }

  #flushArguments(): void {
    if (this.#arguments !== "") {
      this.#pieces.push({ index: this.#index, function: { arguments: this.#arguments } });
    }
    this.#arguments = "";
  }
}

/**
 * Reads `{"name": …, "arguments": {…}}` from held text. `marked` tells that a marker announced the call; otherwise an
 * object counts as a call only if it has arguments and the name of a tool. Returns false if it is not a call: then the
 * text is still held. Once the name and the arguments have begun, it is a call, and the text is released.
 */
export function* readCallObject(reading: CallReading, marked: boolean): Reading<boolean> {
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
    if (key === "name" && name === undefined) {
      name = yield* readJsonString(text);
      if (name === undefined || !(marked || reading.isTool(name))) return begun;
      if (early !== undefined) {
        begin(name);
        reading.arguments(early);
      }
    } else if ((key === "arguments" || key === "parameters") && !begun && early === undefined) {
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

/** Leaves out the space between calls and at the end; gives it back before anything else. False at the end. */
export function* skipSpaceBetweenCalls(
  reading: CallReading,
  isNext: () => Reading<boolean>,
): Reading<boolean> {
  const { text } = reading;
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.peek()) === "") {
    if (!reading.hasCalls) reading.content(text.giveBack());
    text.release();
    return false;
  }
  if (yield* isNext()) return true;
  reading.content(text.giveBack());
  return false;
}
