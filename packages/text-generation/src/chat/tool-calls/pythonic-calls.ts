import type { CallReading } from "./json-call.js";
import { passPythonLiteral } from "./python-literal.js";
import type { Reading } from "./streamed-text.js";

const START = "<|python_start|>";
const END = "<|python_end|>";
const NAME = /[\w.]/;
const PARAMETER = /\w/;

/**
 * Reads a text that begins with `[name(key=value), …]`, and passes the arguments on as JSON. The text after the calls
 * is content. Only names of tools count: any other list is an answer.
 */
export function* readPythonicCalls(reading: CallReading): Reading<void> {
  const { text, sink } = reading;
  text.hold();
  yield* text.skipSpace();
  yield* text.accept(START);
  yield* text.skipSpace();
  if (!(yield* text.accept("["))) {
    sink.content(text.giveBack());
    return;
  }
  yield* text.skipSpace();
  while (yield* readCall(reading)) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept("]")) {
      yield* readEnd(reading);
      return;
    }
    if (!(yield* text.accept(","))) break;
    yield* text.skipSpace();
  }
  sink.content(text.giveBack());
}

/** Reads the marker after the calls, if there is one, and the space before it or before the end of the text. */
function* readEnd({ text }: CallReading): Reading<void> {
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.accept(END)) || !(yield* text.more())) text.release();
  else text.rewind();
}

/** Reads `name(key=value)` from held text. */
function* readCall({ text, sink, isTool }: CallReading): Reading<boolean> {
  const name = yield* text.takeWhile(NAME);
  yield* text.skipSpace();
  if (!isTool(name) || !(yield* text.accept("("))) return false;
  sink.call(name);
  text.release();
  sink.arguments("{");
  for (let count = 0; ; count++) {
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(")")) break;
    const key = yield* text.takeWhile(PARAMETER);
    yield* text.skipSpace();
    if (key === "" || !(yield* text.accept("="))) return false;
    yield* text.skipSpace();
    sink.arguments(`${count > 0 ? ", " : ""}${JSON.stringify(key)}: `);
    text.release();
    text.hold();
    if (!(yield* passValue())) return false;
    text.hold();
    yield* text.skipSpace();
    if (yield* text.accept(",")) continue;
    if (!(yield* text.accept(")"))) return false;
    break;
  }
  text.release();
  sink.arguments("}");
  return true;

  /** Strings pass as they come. Other values are held until they are whole, so that a broken one becomes content. */
  function* passValue(): Reading<boolean> {
    const first = yield* text.peek();
    if (first === '"' || first === "'") {
      text.release();
      return yield* passPythonLiteral(text, (json) => sink.arguments(json));
    }
    let value = "";
    const complete = yield* passPythonLiteral(text, (json) => {
      value += json;
    });
    if (complete) sink.arguments(value);
    return complete;
  }
}
