import { type CallReading, readCallArray, readCallObject } from "./json-call.js";
import type { Reading } from "./streamed-text.js";

const PYTHON_TAG = "<|python_tag|>";

/**
 * Reads a text that begins with calls: objects separated by `;`, `,` or space, or an array of them. Llama 3 may write
 * `<|python_tag|>` before them. The text after the calls is content.
 */
export function* readJsonCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  text.hold();
  yield* text.skipSpace();
  const marked = yield* text.accept(PYTHON_TAG);
  yield* text.skipSpace();
  const isArray = (yield* text.peek()) === "[";
  if (!(yield* isArray ? readCallArray(reading, marked) : readCallObject(reading, marked))) {
    sink.content(text.giveBack());
    return;
  }
  for (;;) {
    text.hold();
    yield* text.skipSpace();
    if (!(yield* text.accept(";"))) yield* text.accept(",");
    yield* text.skipSpace();
    if (!(yield* text.more())) {
      text.release();
      return;
    }
    yield* text.accept(PYTHON_TAG);
    yield* text.skipSpace();
    if (yield* readCallObject(reading, marked)) continue;
    sink.content(text.giveBack());
    return;
  }
}
