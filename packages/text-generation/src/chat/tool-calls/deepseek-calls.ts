import { type CallReading, passArguments, skipSpaceBetweenCalls } from "./json-call.js";
import type { Reading } from "./streamed-text.js";

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
export function* readDeepseekCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(CALLS_BEGIN)))) {
      if (!(yield* text.passUntil(CALLS_BEGIN, (piece) => sink.content(piece)))) return;
    }
    while (yield* readCall(reading)) text.hold();
    sink.content(text.giveBack());
  }
}

/** Reads one call from held text. False if none follows; the end of the calls is then read and released. */
function* readCall({ text, sink }: CallReading): Reading<boolean> {
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
  sink.call(name.trim());
  text.release();
  yield* passArguments(text, (piece) => sink.arguments(piece));
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
