/** A part of a call of a tool, as chunks of OpenAI have it. The first part of a call has its id and name. */
export interface ToolCallDelta {
  readonly index: number;
  readonly id?: string;
  readonly type?: "function";
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

/** A whole call of a tool. */
export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Reads the output `tool_calls`. A text that is not a JSON array has no calls. */
export function readToolCalls(text: string): readonly ToolCallDelta[] {
  if (text === "" || text === "null") return [];
  try {
    const calls = JSON.parse(text) as unknown;
    return Array.isArray(calls) ? (calls as ToolCallDelta[]) : [];
  } catch {
    return [];
  }
}

/** Joins the parts of calls. */
export function joinToolCalls(deltas: readonly ToolCallDelta[]): ToolCall[] {
  const calls = new Map<number, { id: string; name: string; text: string }>();
  for (const { index, id, function: part } of deltas) {
    let call = calls.get(index);
    if (call === undefined) {
      call = { id: "", name: "", text: "" };
      calls.set(index, call);
    }
    if (id !== undefined) call.id = id;
    call.name += part?.name ?? "";
    call.text += part?.arguments ?? "";
  }
  return [...calls.values()].map(({ id, name, text }) => ({
    id,
    type: "function",
    function: { name, arguments: text },
  }));
}
