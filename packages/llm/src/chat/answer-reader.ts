import type { CallReading, Reading } from "./call-reading.js";
import type { ChatTemplate } from "./chat-template.js";
import { type ReasoningForm, reasoningTokens } from "./reasoning-form.js";
import { formOf, TOOL_CALL_TOKENS, type ToolCallFamily } from "./tool-call-family.js";
import type { AnswerPiece } from "./tool-call-pieces.js";
import { AnswerTextReader, callIds, readFamily, type ToolCallReaderOptions } from "./tool-call-reader.js";

/** Splits an answer into reasoning, content and calls. */
export interface AnswerReader {
  push(text: string): AnswerPiece[];
  end(): AnswerPiece[];
}

interface AnswerReaderOptions {
  /** Form of the calls; undefined for a request without tools. */
  readonly family: ToolCallFamily | undefined;
  /** Form of the reasoning; undefined to leave it in the content. */
  readonly reasoning: ReasoningForm | undefined;
  readonly tools: ToolCallReaderOptions["tools"];
  /** The prompt, which may end with the beginning of the reasoning. */
  readonly prompt: string;
}

/** Makes a reader of one answer; undefined if there is nothing to find in it. */
export function createAnswerReader(options: AnswerReaderOptions): AnswerReader | undefined {
  const { family, reasoning, tools, prompt } = options;
  const hasChannels = family !== undefined && formOf(family).calls.kind === "channels";
  const calls =
    family !== undefined && (hasChannels || tools.length > 0)
      ? new AnswerTextReader((reading) => readFamily(reading, family), { tools, createId: callIds(family) })
      : undefined;
  if (reasoning === undefined || hasChannels) return calls;
  const begins = prompt.trimEnd().endsWith(reasoning.open);
  const thoughts = new AnswerTextReader((reading) => readReasoning(reading, reasoning, begins), {
    tools: [],
  });
  if (calls === undefined) return thoughts;
  // Calls are read in what is left beside the reasoning.
  const inContent = (pieces: readonly AnswerPiece[]) =>
    pieces.flatMap((piece) => ("content" in piece ? calls.push(piece.content) : [piece]));
  return {
    push: (text) => inContent(thoughts.push(text)),
    end: () => [...inContent(thoughts.end()), ...calls.end()],
  };
}

/**
 * Passes reasoning at the beginning of the text on as such, without the white space around it, and the rest as content.
 *
 * @param begins true if the prompt ends with the opening marker
 */
function* readReasoning(reading: CallReading, form: ReasoningForm, begins: boolean): Reading<void> {
  const { text } = reading;
  const { open, close, around } = form;
  text.hold();
  yield* text.skipSpace();
  if ((yield* text.accept(open)) || begins) {
    text.release();
    yield* text.skipSpace();
    const trimmed = new Trimmed((piece) => reading.reasoning(piece));
    if ((yield* text.passUntil([close], (piece) => trimmed.push(piece))) === undefined) {
      trimmed.end();
      return;
    }
    text.release();
    yield* text.skipSpace();
  } else {
    // Some models close reasoning that they did not begin.
    if (yield* text.accept(close)) yield* text.skipSpace();
    else text.rewind();
    text.release();
  }
  if (around.length === 0) return;
  while (yield* text.passUntil(around, (piece) => reading.content(piece))) text.release();
}

/** Passes a text on without the white space at its end. */
class Trimmed {
  #space = "";

  constructor(private readonly pass: (piece: string) => void) {}

  push(piece: string): void {
    const text = this.#space + piece;
    const shown = text.trimEnd();
    this.#space = text.slice(shown.length);
    if (shown !== "") this.pass(shown);
  }

  /** The text breaks off here: its white space is part of it. */
  end(): void {
    if (this.#space !== "") this.pass(this.#space);
  }
}

/**
 * Special tokens that answers to a chat show: those around reasoning, and with tools those around calls. Readers of
 * answers look for them.
 */
export function shownTokens(
  { toolCallFamily: family, reasoning }: Pick<ChatTemplate, "toolCallFamily" | "reasoning">,
  hasTools: boolean,
): readonly string[] {
  return [
    ...(reasoning === undefined ? [] : reasoningTokens(reasoning)),
    ...(family !== undefined && (hasTools || family === "harmony") ? TOOL_CALL_TOKENS[family] : []),
  ];
}
