/** Part of a message's content. Templates take text only. */
export interface ChatContentPart {
  readonly type: string;
  readonly text?: string;
}

/** Call of a tool in an assistant's message, as OpenAI has it. */
export interface ChatToolCall {
  readonly id?: string;
  readonly type?: "function";
  readonly function: {
    readonly name: string;
    /** Arguments of the call: JSON text, or the object itself. */
    readonly arguments?: string | Readonly<Record<string, unknown>>;
  };
}

/** Message of a chat, as `chat/completions` of OpenAI has it. */
export interface ChatMessage {
  /** `system`, `developer`, `user`, `assistant` or `tool`; templates may know others. */
  readonly role: string;
  readonly content?: string | readonly ChatContentPart[] | null;
  readonly name?: string;
  /** Calls that the assistant made. */
  readonly tool_calls?: readonly ChatToolCall[] | null;
  /** Call that a message of the role `tool` answers. */
  readonly tool_call_id?: string;
}

/** Tool that a model may call, as OpenAI has it. */
export interface ChatTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    /** JSON schema of the arguments. */
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly strict?: boolean | null;
  };
}
