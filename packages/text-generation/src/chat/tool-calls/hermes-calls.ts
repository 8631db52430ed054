import { type CallReading, readCallObject, skipSpaceBetweenCalls } from "./json-call.js";
import type { Reading } from "./streamed-text.js";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

/** Reads `<tool_call>{…}</tool_call>`, anywhere in the text. A closing tag may be missing. */
export function* readHermesCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  for (;;) {
    if (!(yield* skipSpaceBetweenCalls(reading, () => text.accept(OPEN)))) {
      if (!(yield* text.passUntil(OPEN, (piece) => sink.content(piece)))) return;
    }
    yield* text.skipSpace();
    if (!(yield* readCallObject(reading, true))) {
      sink.content(text.giveBack());
      continue;
    }
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(CLOSE)) text.release();
    else text.rewind();
  }
}
