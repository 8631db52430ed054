import { randomBytes } from "node:crypto";
import {
  CallReading,
  HeldTextLimit,
  type ReadableTool,
  type Reading,
  StreamedText,
  skipSpaceBetweenCalls,
} from "./call-reading.js";
import {
  holdSeparator,
  passArguments,
  readCallArray,
  readCallObjects,
  readKeyedCalls,
} from "./json-calls.js";
import { readBraceCall, readNamedCalls, readTaggedCalls } from "./marked-calls.js";
import { readPythonCalls } from "./python-calls.js";
import { formOf, type ToolCallFamily } from "./tool-call-family.js";
import type { AnswerPiece, ToolCallPiece } from "./tool-call-pieces.js";

/** Finds calls of tools in a text that a model writes. */
interface ToolCallReader {
  /** Takes the next piece of the text, and returns the pieces that are certain by now. */
  push(text: string): ToolCallPiece[];
  /** Ends the text, and returns the rest. */
  end(): ToolCallPiece[];
  /** True once a call was found: then the text ends with the finish reason `tool_calls`. */
  readonly hasCalls: boolean;
}

/** Options of {@link createToolCallReader}. */
export interface ToolCallReaderOptions {
  /**
   * Tools of the request. Without a marker around it, only a call of one of these counts. Where a model writes values
   * without quotes, `parameters` tells which of them are strings.
   */
  readonly tools: readonly ReadableTool[];
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

const MAX_HELD_CHARACTERS = 65_536;
const ALPHANUMERIC = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/**
 * Makes a reader of the calls that a model of a family writes. Names come first, then arguments as they arrive. Text
 * that is not a call is content, and so are a call that cannot be read and reasoning in harmony's channels. However the
 * text is cut into pieces, the joined result is the same.
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
  const reader = new AnswerTextReader((reading) => readFamily(reading, family), {
    createId: callIds(family),
    ...options,
  });
  const withoutReasoning = (pieces: readonly AnswerPiece[]): ToolCallPiece[] =>
    pieces.map((piece) => ("reasoning" in piece ? { content: piece.reasoning } : piece));
  return {
    push: (text) => withoutReasoning(reader.push(text)),
    end: () => withoutReasoning(reader.end()),
    get hasCalls() {
      return reader.hasCalls;
    },
  };
}

/** Runs a reading over a text that arrives in pieces. */
export class AnswerTextReader {
  readonly #text: StreamedText;
  readonly #reading: CallReading;
  #rest: Reading<void> | undefined;

  constructor(
    read: (reading: CallReading) => Reading<void>,
    {
      tools,
      maxHeldCharacters = MAX_HELD_CHARACTERS,
      createId = () => `call_${randomId(24)}`,
    }: ToolCallReaderOptions,
  ) {
    this.#text = new StreamedText(maxHeldCharacters);
    this.#reading = new CallReading(this.#text, tools, createId);
    this.#rest = read(this.#reading);
  }

  get hasCalls(): boolean {
    return this.#reading.hasCalls;
  }

  push(piece: string): AnswerPiece[] {
    this.#text.append(piece);
    return this.#read();
  }

  end(): AnswerPiece[] {
    this.#text.close();
    return this.#read();
  }

  #read(): AnswerPiece[] {
    try {
      if (this.#rest?.next().done) this.#rest = undefined;
    } catch (error) {
      if (!(error instanceof HeldTextLimit)) throw error;
      this.#rest = undefined;
      this.#reading.content(this.#text.giveBack());
    }
    // What follows the last call is content.
    if (this.#rest === undefined) this.#reading.content(this.#text.take(this.#text.unread.length));
    return this.#reading.take();
  }
}

/** Makes ids of calls as the templates of a family take them: Mistral's ask for 9 characters. */
export function callIds(family: ToolCallFamily): () => string {
  return family === "mistral" ? () => randomId(9) : () => `call_${randomId(24)}`;
}

/** Letters and digits by chance. */
export function randomId(length: number): string {
  // 256 is not a multiple of 62: the first characters are a little more frequent, which does no harm in an id.
  return Array.from(randomBytes(length), (byte) => ALPHANUMERIC[byte % ALPHANUMERIC.length]).join("");
}

/** Reads a text in the form of a family, to its end or to the text after its last call. */
export function* readFamily(reading: CallReading, family: ToolCallFamily): Reading<void> {
  const { calls, open } = formOf(family);
  if (calls.kind === "channels") return yield* readChannels(reading);
  if (calls.kind === "recipients") return yield* readRecipients(reading);
  if (open.length === 0) return yield* readUnmarkedCalls(reading, family);
  if (calls.kind === "mistral" && !(yield* readBareArray(reading))) {
    // An array without a marker that has no calls is content, and so is the text after it, up to a marker.
    reading.content(reading.text.giveBack());
  }
  yield* readMarkedCalls(reading, family);
}

/** Reads calls after markers, anywhere in the text. The closing marker may be missing. */
function* readMarkedCalls(reading: CallReading, family: ToolCallFamily): Reading<void> {
  const { text } = reading;
  const { open, close = [] } = formOf(family);
  for (;;) {
    let marker: string | undefined;
    const isNext = yield* skipSpaceBetweenCalls(reading, function* () {
      marker = yield* text.acceptAny(open);
      return marker !== undefined;
    });
    if (!isNext) {
      marker = yield* text.passUntil(open, (piece) => reading.content(piece));
      if (marker === undefined) return;
    }
    yield* text.skipSpace();
    if (!(yield* readCalls(reading, family, marker!))) {
      reading.content(text.giveBack());
      continue;
    }
    text.hold();
    yield* text.skipSpace();
    if (yield* text.acceptAny(close)) text.release();
    else text.rewind();
  }
}

/** Reads the calls after a marker from held text. */
function readCalls(reading: CallReading, family: ToolCallFamily, marker: string): Reading<boolean> {
  const { calls } = formOf(family);
  switch (calls.kind) {
    case "json":
      return readCallObjects(reading, true);
    case "keyed":
      return readKeyedCalls(reading);
    case "named":
      return readNamedCalls(reading, calls, marker);
    case "tagged":
      return readTaggedCalls(reading, calls, marker);
    case "python":
      return readPythonCalls(reading, true);
    case "braces":
      return readBraceCall(reading, calls.quote);
    default:
      return readMistralCalls(reading);
  }
}

/** Reads a text that begins with calls, perhaps after a special token. The text after the calls is content. */
function* readUnmarkedCalls(reading: CallReading, family: ToolCallFamily): Reading<void> {
  const { text } = reading;
  const { calls, tokens = [] } = formOf(family);
  text.hold();
  yield* text.skipSpace();
  let marked = false;
  while (yield* text.acceptAny(tokens)) {
    marked = true;
    yield* text.skipSpace();
  }
  const isCall =
    calls.kind === "python" && (yield* text.peek()) !== "{"
      ? yield* readPythonCalls(reading, false)
      : yield* readUnmarkedObjects(reading, marked, tokens);
  if (!isCall) {
    reading.content(text.giveBack());
    return;
  }
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.acceptAny(tokens)) || !(yield* text.more())) text.release();
  else text.rewind();
}

/** Objects may each have the special token before them. */
function* readUnmarkedObjects(
  reading: CallReading,
  marked: boolean,
  tokens: readonly string[],
): Reading<boolean> {
  const { text } = reading;
  if (!(yield* readCallObjects(reading, marked))) return false;
  for (;;) {
    yield* holdSeparator(reading);
    const again = (yield* text.acceptAny(tokens)) !== undefined;
    yield* text.skipSpace();
    if (again && (yield* readCallObjects(reading, true))) continue;
    if (yield* text.more()) text.rewind();
    else text.release();
    return true;
  }
}

const MISTRAL_OPEN = "[TOOL_CALLS]";
const MISTRAL_CALL_ID = "[CALL_ID]";
const MISTRAL_ARGUMENTS = "[ARGS]";
const MISTRAL_NAME = /[\w.:/-]/;

/**
 * Reads an array of calls without a marker, because the marker is a special token that some engines leave out. True if
 * the text begins with one, or with a marker, which stays unread.
 */
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

/** Reads objects, or `name{…}`, with `[CALL_ID]` and an id, and `[ARGS]`, before the arguments. */
function* readMistralCalls(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  const first = yield* text.peek();
  if (first === "[" || first === "{") return yield* readCallObjects(reading, true);
  const name = yield* text.takeWhile(MISTRAL_NAME);
  if (name === "") return false;
  const id = (yield* text.accept(MISTRAL_CALL_ID)) ? yield* text.takeWhile(MISTRAL_NAME) : undefined;
  yield* text.accept(MISTRAL_ARGUMENTS);
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "{") return false;
  reading.call(name, id === "" ? undefined : id);
  text.release();
  yield* passArguments(text, (piece) => reading.arguments(piece));
  return true;
}

const START = "<|start|>";
const CHANNEL = "<|channel|>";
const MESSAGE = "<|message|>";
/** Ends of a message. Another message may follow without one. */
const ENDS = ["<|end|>", "<|call|>", "<|return|>"];

/**
 * Reads the messages of harmony, each with a header:
 *
 * ```
 * <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json<|message|>{…}<|call|>
 * ```
 *
 * `analysis` is reasoning, a message to a function is a call, and the others are content.
 */
function* readChannels(reading: CallReading): Reading<void> {
  const { text } = reading;
  for (;;) {
    text.hold();
    const starts = yield* text.acceptAny([START, CHANNEL, " to="]);
    if (starts === undefined) {
      // Text without a header.
      text.rewind();
      const found = yield* text.passUntil([START, CHANNEL], (piece) => reading.content(piece));
      if (found === undefined) return;
      text.rewind();
      continue;
    }
    const header = yield* text.until(MESSAGE);
    if (header === undefined) {
      reading.content(text.giveBack());
      return;
    }
    text.release();
    yield* readMessage(reading, starts + header);
    yield* skipEnds(text);
  }
}

function* readMessage(reading: CallReading, header: string): Reading<void> {
  const { text } = reading;
  const recipient = /\bto=(?:functions\.)?([^\s<]+)/.exec(header)?.[1];
  const isCall = recipient !== undefined && reading.hasTools;
  const isReasoning = /<\|channel\|>analysis/.test(header);
  if (isCall) reading.call(recipient);
  const pass = (piece: string) => {
    if (isCall) reading.arguments(piece);
    else if (isReasoning) reading.reasoning(piece);
    else reading.content(piece);
  };
  yield* text.passUntil([...ENDS, START, CHANNEL], pass);
  text.rewind();
}

function* skipEnds(text: StreamedText): Reading<void> {
  while (yield* text.acceptAny(ENDS)) {
    // Each of them ends the message.
  }
}

const RECIPIENT = ">>>";

/**
 * Reads `name`, a line break and the arguments, or `all`, a line break and content. The prompt ends with the first
 * `>>>`, and each further one begins another part.
 */
function* readRecipients(reading: CallReading): Reading<void> {
  const { text } = reading;
  const content = (piece: string) => reading.content(piece);
  for (let count = 0; ; count++) {
    if (count === 0) text.hold();
    yield* text.accept(RECIPIENT);
    const recipient = yield* text.takeWhile(/[^\n>]/);
    const isLine = yield* text.accept("\n");
    if (isLine && reading.isTool(recipient)) {
      reading.call(recipient);
      text.release();
      yield* text.skipSpace();
      yield* passArguments(text, (piece) => reading.arguments(piece));
      text.hold();
      yield* text.skipSpace();
      if (!(yield* text.more())) {
        text.release();
        return;
      }
      text.rewind();
    } else if (isLine && recipient === "all") text.release();
    else reading.content(text.giveBack());
    if (!(yield* text.passUntil([RECIPIENT], content))) return;
  }
}
