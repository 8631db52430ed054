import type { CallReading, Reading, StreamedText } from "./call-reading.js";
import { passArguments } from "./json-calls.js";

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
export function* readChannels(reading: CallReading): Reading<void> {
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
export function* readRecipients(reading: CallReading): Reading<void> {
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
