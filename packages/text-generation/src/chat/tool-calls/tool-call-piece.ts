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
