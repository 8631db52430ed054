/** Piece of a call of a tool, as in `delta.tool_calls` of a chunk of OpenAI's chat completions. */
export interface ToolCallDelta {
  /** Number of the call in the message, from 0. */
  readonly index: number;
  /** In the first delta of a call. */
  readonly id?: string;
  readonly type?: "function";
  readonly function: {
    /** In the first delta of a call. */
    readonly name?: string;
    /** Next characters of the arguments. All of them joined are a JSON object, if the model wrote one. */
    readonly arguments?: string;
  };
}

/** Piece that a reader of calls found in a text: characters of the answer, or a part of a call. */
export type ToolCallPiece = { readonly content: string } | ToolCallDelta;

/** Piece of an answer whose reasoning is kept apart. */
export type AnswerPiece = ToolCallPiece | { readonly reasoning: string };

/** Joins consecutive changes of one call, so that each call has one entry. */
export function joinDeltas(changes: readonly ToolCallDelta[]): readonly ToolCallDelta[] {
  const deltas: ToolCallDelta[] = [];
  for (const delta of changes) {
    const at = deltas.findIndex(({ index }) => index === delta.index);
    if (at < 0) deltas.push(delta);
    else deltas[at] = joinedDelta(deltas[at]!, delta);
  }
  return deltas;
}

function joinedDelta(first: ToolCallDelta, second: ToolCallDelta): ToolCallDelta {
  const text = (first.function.arguments ?? "") + (second.function.arguments ?? "");
  return { ...first, function: { ...first.function, arguments: text } };
}
