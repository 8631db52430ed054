import {
  type CallReading,
  passArguments,
  readCallArray,
  readCallObject,
  skipSpaceBetweenCalls,
} from "./json-call.js";
import type { Reading } from "./streamed-text.js";

const OPEN = "[TOOL_CALLS]";
const CALL_ID = "[CALL_ID]";
const ARGUMENTS = "[ARGS]";
const NAME = /[\w.:/-]/;

/**
 * Reads `[TOOL_CALLS]` with an array of objects, or with a name and its arguments. An array at the very beginning of
 * the text also counts, because the marker is a special token that some engines leave out.
 */
export function* readMistralCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  if (!(yield* readBareArray(reading))) {
    // An array without a marker that has no calls is content, and so is the text after it, up to a marker.
    sink.content(text.giveBack());
  }
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(OPEN)))) {
      if (!(yield* text.passUntil(OPEN, (piece) => sink.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readCalls(reading))) sink.content(text.giveBack());
  }
}

/** Reads an array of calls without a marker. True if the text begins with one, or with a marker, which stays unread. */
function* readBareArray(reading: CallReading): Reading<boolean> {
  const { text } = reading;
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "[" || (yield* text.accept(OPEN))) {
    text.rewind();
    return true;
  }
  return yield* readCallArray(reading, false);
}

function* readCalls(reading: CallReading): Reading<boolean> {
  const first = yield* reading.text.peek();
  if (first === "[") return yield* readCallArray(reading, true);
  if (first === "{") return yield* readCallObject(reading, true);
  return yield* readNamedCall(reading);
}

/** Reads `name{…}`, with `[CALL_ID]` and an id, and `[ARGS]`, before the arguments. */
function* readNamedCall({ text, sink }: CallReading): Reading<boolean> {
  const name = yield* text.takeWhile(NAME);
  if (name === "") return false;
  if (yield* text.accept(CALL_ID)) yield* text.takeWhile(NAME);
  yield* text.accept(ARGUMENTS);
  yield* text.skipSpace();
  if ((yield* text.peek()) !== "{") return false;
  sink.call(name);
  text.release();
  yield* passArguments(text, (piece) => sink.arguments(piece));
  return true;
}
