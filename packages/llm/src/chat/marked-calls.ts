import { type CallReading, jsonCharacters, type Reading, type StreamedText } from "./call-reading.js";
import { passArguments } from "./json-calls.js";
import { jsonOfPython } from "./python-calls.js";
import type { CallForm, NameTag } from "./tool-call-family.js";

type NamedForm = Extract<CallForm, { kind: "named" }>;
type TaggedForm = Extract<CallForm, { kind: "tagged" }>;

/** Fence around the arguments of DeepSeek V3 and R1, which write `function` in the place of the name. */
const FENCE_BEGIN = "```json";
const FENCE_END = "```";

/**
 * Reads calls of a name and JSON from held text. False if none follows.
 *
 * @param marker the marker that was read before, which may be the beginning of the first call itself
 */
export function* readNamedCalls(reading: CallReading, form: NamedForm, marker: string): Reading<boolean> {
  const { text } = reading;
  return yield* readSeries(reading, form, marker, function* () {
    let given = (yield* readTag(text, form.name))?.name.trim();
    if (given === undefined || given === "") return false;
    const isFenced = given === "function" && (yield* text.peek()) !== "{";
    if (isFenced) {
      given = yield* text.takeWhile(/[^\s`<]/);
      yield* text.skipSpace();
      if (given === "" || !(yield* text.accept(FENCE_BEGIN))) return false;
    }
    yield* text.skipSpace();
    if ((yield* text.peek()) !== "{") return false;
    // Kimi's names are also the ids of their calls.
    const numbered = /^functions\.(.+):\d+$/.exec(given);
    reading.call(numbered?.[1] ?? given, numbered?.[0]);
    text.release();
    yield* passArguments(text, (piece) => reading.arguments(piece));
    text.hold();
    yield* text.skipSpace();
    if (isFenced && (yield* text.accept(FENCE_END))) yield* text.skipSpace();
    if (yield* text.accept(form.end)) text.release();
    else text.rewind();
    return true;
  });
}

/**
 * Reads calls of a name and a tag for each argument from held text. Strings pass as they come; other values are held,
 * because the tool's schema says what they are. False if none follows.
 */
export function* readTaggedCalls(reading: CallReading, form: TaggedForm, marker: string): Reading<boolean> {
  const { text } = reading;
  return yield* readSeries(reading, form, marker, function* () {
    const name = (yield* readTag(text, form.name))?.name.trim();
    if (name === undefined || !/^[^\s<>{}]+$/.test(name)) return false;
    reading.call(name);
    text.release();
    reading.arguments("{");
    for (let count = 0; ; count++) {
      text.hold();
      yield* text.skipSpace();
      if (yield* text.accept(form.end)) break;
      const tag = (yield* text.accept(form.key.begin)) ? yield* readTag(text, form.key) : undefined;
      if (tag === undefined) {
        text.rewind();
        reading.arguments("}");
        return true;
      }
      if (form.value.begin !== "") {
        yield* text.skipSpace();
        yield* text.accept(form.value.begin);
      }
      text.release();
      reading.arguments(`${count > 0 ? ", " : ""}${JSON.stringify(tag.name.trim())}: `);
      const types = tag.isString ?? typesOf(reading.schemaOf(name, tag.name.trim()));
      if (!(yield* passValue(reading, form, types))) return true;
    }
    text.release();
    reading.arguments("}");
    return true;
  });
}

/** Reads one call after the other, as long as they begin as the form says. */
function* readSeries(
  { text }: CallReading,
  { name: { begin } }: NamedForm | TaggedForm,
  marker: string,
  readCall: () => Reading<boolean>,
): Reading<boolean> {
  const isFirst = begin === "" || marker === begin;
  for (let count = 0; ; count++) {
    if (count > 0) text.hold();
    yield* text.skipSpace();
    const begins = count === 0 && isFirst ? true : begin !== "" && (yield* text.accept(begin));
    if (begins && (yield* readCall())) continue;
    if (count > 0) text.rewind();
    return count > 0;
  }
}

interface ReadTag {
  readonly name: string;
  /** Type that the tag itself gives the value: only a string, or anything else. */
  readonly isString: ReadonlySet<string> | undefined;
}

function* readTag(text: StreamedText, { end, rest }: NameTag): Reading<ReadTag | undefined> {
  const name = end === undefined ? yield* text.takeWhile(/[^\s<]/) : yield* text.until(end);
  const words = rest === undefined ? "" : yield* text.until(rest);
  if (name === undefined || words === undefined) return undefined;
  const isString = /\bstring="(true|false)"/.exec(words)?.[1];
  return { name, isString: isString === undefined ? undefined : isString === "true" ? STRING : OTHER };
}

const STRING: ReadonlySet<string> = new Set(["string"]);
const OTHER: ReadonlySet<string> = new Set(["number", "boolean", "null", "object", "array"]);

/** Types that a JSON schema allows; undefined if it does not say. */
function typesOf(schema: unknown): ReadonlySet<string> | undefined {
  const { type, enum: values, const: value, anyOf, oneOf } = Object(schema) as Record<string, unknown>;
  if (typeof type === "string") return new Set([type]);
  if (Array.isArray(type)) return new Set(type as string[]);
  const listed = Array.isArray(values) ? (values as unknown[]) : value === undefined ? undefined : [value];
  if (listed !== undefined) return new Set(listed.map(typeOf));
  const members = [anyOf, oneOf].find(Array.isArray)?.map(typesOf);
  if (members === undefined || members.includes(undefined)) return undefined;
  return new Set(members.flatMap((one) => [...one!]));
}

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

const CDATA_BEGIN = "<![CDATA[";
const CDATA_END = "]]>";

/** Reads a value up to its end, and passes it on as JSON. False if the text ends within it. */
function* passValue(
  reading: CallReading,
  { value: { end, trims } }: TaggedForm,
  types: ReadonlySet<string> | undefined,
): Reading<boolean> {
  const { text } = reading;
  if (trims) yield* text.accept("\n");
  const isString = types?.size === 1 && types.has("string");
  const string = new JsonStringPasser((piece) => reading.arguments(piece), trims === true);
  let held = "";
  const pass = (piece: string) => {
    if (isString) string.push(piece);
    else held += piece;
  };
  if (isString) reading.arguments('"');
  if (yield* text.accept(CDATA_BEGIN)) {
    yield* text.passUntil([CDATA_END], pass);
    text.release();
  }
  const complete = (yield* text.passUntil([end], pass)) !== undefined;
  text.release();
  if (isString) {
    string.end(complete);
    if (complete) reading.arguments('"');
  } else if (complete) reading.arguments(jsonOf(trims ? held.replace(/\n$/, "") : held, types));
  return complete;
}

/** Passes a text on as the inside of a JSON string, never half of a character. */
class JsonStringPasser {
  #held = "";

  /** @param trims whether a line break at the end is left out */
  constructor(
    private readonly pass: (json: string) => void,
    private readonly trims: boolean,
  ) {}

  push(piece: string): void {
    const text = this.#held + piece;
    const kept = /[\ud800-\udbff]$/.test(text) || (this.trims && text.endsWith("\n")) ? 1 : 0;
    this.#held = text.slice(text.length - kept);
    if (text.length > kept) this.pass(jsonCharacters(text.slice(0, text.length - kept)));
  }

  end(complete: boolean): void {
    if (this.#held !== "" && !(complete && this.trims && this.#held === "\n")) {
      this.pass(jsonCharacters(this.#held));
    }
  }
}

/** Templates of some models print the words, lists and dictionaries of earlier calls as Python does. */
const PYTHON = /^(True|False|None|[[{].*)$/s;

/** JSON of a value that is written without quotes: the value itself if it fits the types, else a string. */
function jsonOf(written: string, types: ReadonlySet<string> | undefined): string {
  const text = written.trim();
  const [json, value] = parsed(text) ?? (PYTHON.test(text) ? parsed(jsonOfPython(text)) : undefined) ?? [];
  if (json === undefined) return JSON.stringify(written);
  const type = typeOf(value);
  const fits = types === undefined ? type !== "string" : types.has(type) || !types.has("string");
  return fits || (type === "number" && types?.has("integer")) ? json : JSON.stringify(written);
}

/** A text and its value, if it is JSON. */
function parsed(json: string | undefined): readonly [string, unknown] | undefined {
  try {
    return json === undefined ? undefined : [json, JSON.parse(json)];
  } catch {
    return undefined;
  }
}

/** Nesting of lists and objects. Deeper values are not read. */
const MAX_DEPTH = 64;

/** Reads `call:name{key:value, …}` from held text, with `quote` around strings. False if it is not a call. */
export function* readBraceCall(reading: CallReading, quote: string): Reading<boolean> {
  const { text } = reading;
  if (!(yield* text.accept("call:"))) return false;
  const name = yield* text.takeWhile(/[^\s{<]/);
  yield* text.skipSpace();
  if (name === "" || (yield* text.peek()) !== "{") return false;
  reading.call(name);
  text.release();
  yield* passBraceValue(text, quote, (json) => reading.arguments(json), 0);
  return true;
}

function* passBraceValue(
  text: StreamedText,
  quote: string,
  pass: (json: string) => void,
  depth: number,
): Reading<boolean> {
  if (depth > MAX_DEPTH) return false;
  if (yield* text.accept(quote)) {
    pass('"');
    const string = new JsonStringPasser(pass, false);
    const complete = (yield* text.passUntil([quote], (piece) => string.push(piece))) !== undefined;
    text.release();
    string.end(complete);
    if (complete) pass('"');
    return complete;
  }
  const first = yield* text.peek();
  if (first !== "{" && first !== "[") {
    const written = yield* text.takeWhile(/[^,\]}]/);
    pass(jsonOf(written, undefined));
    return written !== "";
  }
  const end = first === "{" ? "}" : "]";
  pass(text.take(1));
  for (let count = 0; ; count++) {
    yield* text.skipSpace();
    if (yield* text.accept(end)) break;
    if (count > 0) pass(", ");
    if (end === "}") {
      const isQuoted = yield* text.accept(quote);
      const key = isQuoted ? yield* text.until(quote) : yield* text.takeWhile(/[^:,{}[\]]/);
      yield* text.skipSpace();
      if (key === undefined || !(yield* text.accept(":"))) return false;
      pass(`${JSON.stringify(key.trim())}: `);
      yield* text.skipSpace();
    }
    if (!(yield* passBraceValue(text, quote, pass, depth + 1))) return false;
    yield* text.skipSpace();
    yield* text.accept(",");
  }
  pass(end);
  return true;
}
