/** Part of a message's content. Templates take text only. */
export interface ChatContentPart {
  /** Kind of the part: `text`. */
  readonly type: string;
  /** Text of the part. */
  readonly text?: string;
}

/** Call of a tool in an assistant's message, as in OpenAI's API. */
export interface ChatToolCall {
  /** Id to which `tool_call_id` of the answer refers. */
  readonly id?: string;
  readonly type?: "function";
  /** Function that the model called. */
  readonly function: {
    readonly name: string;
    /** Arguments of the call: JSON text, or the object itself. */
    readonly arguments?: string | Readonly<Record<string, unknown>>;
  };
}

/** Message of a chat, as in `chat/completions` of OpenAI's API. */
export interface ChatMessage {
  /** `system`, `developer`, `user`, `assistant` or `tool`; templates may know others. */
  readonly role: string;
  /** Text of the message, or its parts; null or absent for an assistant that only calls tools. */
  readonly content?: string | readonly ChatContentPart[] | null;
  /** Name of the author, for templates that print it. */
  readonly name?: string;
  /** Calls that the assistant made. */
  readonly tool_calls?: readonly ChatToolCall[] | null;
  /** Call that a message of the role `tool` answers. */
  readonly tool_call_id?: string;
}

/** Tool that a model may call, as in OpenAI's API. */
export interface ChatTool {
  readonly type: "function";
  /** Function that the tool is. */
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON schema of the arguments. */
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly strict?: boolean | null;
  };
}
