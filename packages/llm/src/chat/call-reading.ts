import type { AnswerPiece, ToolCallDelta } from "./tool-call-pieces.js";

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

  /** Reads the text before a marker, and the marker. Undefined if the text ends without it. */
  *until(marker: string): Reading<string | undefined> {
    let text = "";
    while (!(yield* this.accept(marker))) {
      if (!(yield* this.more())) return undefined;
      text += this.take(1);
    }
    return text;
  }

  /** Reads one of several markers. Undefined if none of them follows. */
  *acceptAny(markers: readonly string[]): Reading<string | undefined> {
    for (const marker of markers) if (yield* this.accept(marker)) return marker;
    return undefined;
  }

  /**
   * Reads up to and with the first of several markers, and passes the text before it on as it comes. The marker is held.
   *
   * @returns the marker; undefined if the text ends without one
   */
  *passUntil(markers: readonly string[], pass: (text: string) => void): Reading<string | undefined> {
    for (;;) {
      const { unread } = this;
      const found = firstMarker(unread, markers);
      if (found !== undefined) {
        pass(this.take(found.at));
        this.hold();
        return this.take(found.marker.length);
      }
      const held = Math.max(...markers.map((marker) => beginningAtEnd(unread, marker)));
      pass(this.take(unread.length - held));
      if (!(yield* this.further())) {
        pass(this.take(this.unread.length));
        return undefined;
      }
    }
  }
}

function firstMarker(
  text: string,
  markers: readonly string[],
): { readonly marker: string; readonly at: number } | undefined {
  let first: { marker: string; at: number } | undefined;
  for (const marker of markers) {
    const at = text.indexOf(marker);
    if (at !== -1 && (first === undefined || at < first.at)) first = { marker, at };
  }
  return first;
}

/** Number of characters at the end of `text` that may be the beginning of `marker`. */
function beginningAtEnd(text: string, marker: string): number {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--) {
    if (text.endsWith(marker.slice(0, length))) return length;
  }
  return 0;
}

/** Characters of a text as they are inside of a JSON string. */
export function jsonCharacters(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A tool as readers need it. */
export interface ReadableTool {
  readonly function: {
    readonly name: string;
    /** JSON schema of the arguments: it tells strings from other values where the model does not. */
    readonly parameters?: object | null | undefined;
  };
}

/** A text in which readers look for calls. Collects the content, the reasoning and the calls that they find, in order. */
export class CallReading {
  #pieces: AnswerPiece[] = [];
  #index = -1;
  readonly #tools: ReadonlyMap<string, ReadableTool>;

  /** @param tools tools of the request */
  constructor(
    readonly text: StreamedText,
    tools: readonly ReadableTool[],
    private readonly createId: () => string,
  ) {
    this.#tools = new Map(tools.map((tool) => [tool.function.name, tool]));
  }

  isTool(name: string): boolean {
    return this.#tools.has(name);
  }

  get hasTools(): boolean {
    return this.#tools.size > 0;
  }

  /** JSON schema of a parameter; undefined if the tool does not describe it. */
  schemaOf(tool: string, parameter: string): unknown {
    const parameters = this.#tools.get(tool)?.function.parameters as { properties?: object } | undefined;
    const properties = Object(parameters?.properties) as Record<string, unknown>;
    return Object.hasOwn(properties, parameter) ? properties[parameter] : undefined;
  }

  get hasCalls(): boolean {
    return this.#index >= 0;
  }

  content(text: string): void {
    if (text === "") return;
    const last = this.#pieces.at(-1);
    const before = last !== undefined && "content" in last ? last.content : undefined;
    this.#put({ content: (before ?? "") + text }, before !== undefined);
  }

  reasoning(text: string): void {
    if (text === "") return;
    const last = this.#pieces.at(-1);
    const before = last !== undefined && "reasoning" in last ? last.reasoning : undefined;
    this.#put({ reasoning: (before ?? "") + text }, before !== undefined);
  }

  /** @param id id that the model gave the call. @default a new one */
  call(name: string, id = this.createId()): void {
    this.#index++;
    this.#pieces.push({ index: this.#index, id, type: "function", function: { name, arguments: "" } });
  }

  /** Adds to the arguments of the call that began last. */
  arguments(text: string): void {
    if (text === "") return;
    const last = this.#pieces.at(-1) as Partial<ToolCallDelta> | undefined;
    const before = last?.index !== undefined && last.id === undefined ? last.function?.arguments : undefined;
    this.#put({ index: this.#index, function: { arguments: (before ?? "") + text } }, before !== undefined);
  }

  /** Takes the pieces collected since the last call, with neighbouring texts joined. */
  take(): AnswerPiece[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #put(piece: AnswerPiece, replaces: boolean): void {
    if (replaces) this.#pieces.pop();
    this.#pieces.push(piece);
  }
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
