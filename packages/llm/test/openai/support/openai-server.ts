import { sample, type TensorSpec, Triton } from "@tritonjs/core";
import { onTestFinished } from "vitest";
import { type ServedOptions, servedOptions } from "../../../../../test/support/served-options.js";
import { type OpenAiOptions, openai } from "../../../src/openai/index.js";

/** A server that is closed after the test. Warnings go to a list. */
export function newTriton(options: ServedOptions = {}, warnings: string[] = []): Triton {
  const logger = { error() {}, warn: (text: string) => void warnings.push(text), info() {}, debug() {} };
  const triton = new Triton(servedOptions({ logger, ...options }));
  onTestFinished(() => triton.close());
  return triton;
}

/** Serves the OpenAI endpoints on a free port, and returns their address. */
export async function serveOpenAi(triton: Triton, options: OpenAiOptions = {}): Promise<string> {
  const { addresses } = await triton.serve({ frontends: [openai({ port: 0, ...options })] });
  return addresses.openai!.url;
}

const TEXT = { dtype: "BYTES", shape: [1] } as const;
const FLAG = { dtype: "BOOL", shape: [1], optional: true } as const;

/** What a model was asked for. */
export interface Asked {
  readonly prompt: string | undefined;
  readonly messages: unknown;
  readonly tools: unknown;
  readonly sampling: Record<string, unknown>;
  readonly stream: boolean | undefined;
  readonly signal: AbortSignal;
}

/** One response of a model. */
export interface Said {
  readonly text?: string;
  readonly bytes?: Uint8Array;
  readonly reason?: string;
  readonly logprobs?: string;
  readonly tools?: unknown;
  readonly input?: number;
  readonly output?: number;
}

const INPUTS: TensorSpec[] = [
  { name: "text_input", ...TEXT, optional: true },
  { name: "messages", ...TEXT, optional: true },
  { name: "tools", ...TEXT, optional: true },
  { name: "sampling_parameters", ...TEXT, optional: true },
  { name: "stream", ...FLAG },
  { name: "exclude_input_in_output", ...FLAG },
  { name: "return_logprobs", ...FLAG },
  { name: "return_num_input_tokens", ...FLAG },
];
const OUTPUTS: TensorSpec[] = [
  { name: "text_output", ...TEXT },
  { name: "finish_reason", ...TEXT },
  { name: "logprobs", ...TEXT },
  { name: "tool_calls", ...TEXT },
  { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
  { name: "num_output_tokens", dtype: "UINT32", shape: [1] },
];

/**
 * Binds a text model with the tensors of vLLM's backend.
 *
 * @param inputs names of the inputs that it has; all unless given
 */
export function bindText(
  triton: Triton,
  modelName: string,
  answer: (asked: Asked) => AsyncGenerator<Said> | Generator<Said>,
  inputs: readonly string[] = INPUTS.map(({ name }) => name),
): { unbind(): Promise<void> } {
  return triton.bind({
    modelName,
    inputs: INPUTS.filter(({ name }) => inputs.includes(name)),
    outputs: OUTPUTS,
    // One request in each instance.
    config: { batching: false, decoupled: true, instanceGroup: [{ count: 4 }] },
    // biome-ignore lint/suspicious/noExplicitAny: the inputs are those of a list.
    inferFunc: sample(async function* (given: any, context: any) {
      const text = (name: string): string | undefined => given[name]?.text(0);
      const json = (name: string) => JSON.parse(text(name) ?? "null");
      const asked: Asked = {
        prompt: text("text_input"),
        messages: json("messages"),
        tools: json("tools"),
        sampling: json("sampling_parameters") ?? {},
        stream: given.stream === undefined ? undefined : given.stream.get(0) === 1,
        signal: context.signal,
      };
      for await (const said of answer(asked)) {
        yield {
          text_output: [said.bytes ?? said.text ?? ""],
          finish_reason: [said.reason ?? "null"],
          logprobs: [said.logprobs ?? "null"],
          tool_calls: [said.tools === undefined ? "" : JSON.stringify(said.tools)],
          num_input_tokens: [said.input ?? 3],
          num_output_tokens: [said.output ?? 1],
        };
      }
    }) as never,
  });
}

/** Says some words, one in each response. */
export function* say(...words: readonly string[]): Generator<Said> {
  for (const [i, text] of words.entries()) {
    yield { text, ...(i === words.length - 1 && { reason: "stop" }) };
  }
}

/** Sends JSON. */
export function post(url: string, body: unknown, init: RequestInit = {}): Promise<Response> {
  const headers = { "content-type": "application/json", ...(init.headers as Record<string, string>) };
  return fetch(url, {
    ...init,
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** The data of the events of a stream, as JSON where it is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests compare all shapes.
export async function eventsOf(response: Response): Promise<any[]> {
  const text = await response.text();
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      const data = event.slice(event.indexOf("data: ") + "data: ".length);
      return data === "[DONE]" ? data : JSON.parse(data);
    });
}

/** A promise, and the function that resolves it. */
export function signalOf(): { readonly reached: Promise<void>; readonly reach: () => void } {
  let reach = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return { reached, reach };
}
