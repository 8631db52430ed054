import type { CallSink } from "./call-sink.js";
import { passJsonString, passJsonValue, readJsonString } from "./json-text.js";
import type { Reading, StreamedText } from "./streamed-text.js";

/** State that the readers of calls share. */
export interface CallReading {
  readonly text: StreamedText;
  readonly sink: CallSink;
  /** True if the request has a tool of this name. */
  isTool(name: string): boolean;
}

/**
 * Reads `{"name": …, "arguments": {…}}` from held text. `marked` tells that a marker announced the call; otherwise an
 * object counts as a call only if it has arguments and the name of a tool. Returns false if it is not a call: then the
 * text is still held. Once the name and the arguments have begun, it is a call, and the text is released.
 */
export function* readCallObject(reading: CallReading, marked: boolean): Reading<boolean> {
  const { text, sink } = reading;
  if (!(yield* text.accept("{"))) return false;
  let name: string | undefined;
  let early: string | undefined;
  let begun = false;
  const begin = (found: string) => {
    sink.call(found);
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
        sink.arguments(early);
      }
    } else if ((key === "arguments" || key === "parameters") && !begun && early === undefined) {
      if (name !== undefined) {
        begin(name);
        if (!(yield* passArguments(text, (piece) => sink.arguments(piece)))) return true;
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
  sink.arguments("{}");
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
  const { text, sink } = reading;
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
    sink.content(text.giveBack());
    return true;
  }
  text.release();
  return true;
}

/** Leaves out the space between calls and at the end; gives it back before anything else. False at the end. */
export function* skipSpaceBetweenCalls(
  { text, sink }: CallReading,
  isNext: () => Reading<boolean>,
): Reading<boolean> {
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.peek()) === "") {
    if (!sink.hasCalls) sink.content(text.giveBack());
    text.release();
    return false;
  }
  if (yield* isNext()) return true;
  sink.content(text.giveBack());
  return false;
}
