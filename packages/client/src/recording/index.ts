import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  inputTensor,
  type PlainTensor,
  plainTensor,
  Tensor,
  TritonError,
  tensorDifference,
  tensorOfPlain,
  toBase64,
} from "@tritonjs/protocol";
import { isSharedMemoryInput } from "../infer-request.js";
import { InferResult } from "../infer-result.js";

/** Options of {@link openRecording}. */
export interface RecordingOptions<S extends object> {
  /** File of the calls: JSON. */
  readonly file: string | URL;
  /** `record` calls the server and writes the file, `replay` answers from the file without a server. */
  readonly mode: "record" | "replay";
  /** Opens the client of the server. Not called in the mode `replay`. */
  readonly open: () => S;
}

/** A client whose calls are recorded or replayed. */
export interface CallRecording<S> extends AsyncDisposable {
  /** Takes the place of the client, also in `new ModelClient(client, name)` and `createClient(client)`. */
  readonly client: S;
  /**
   * Ends the recording: closes the client and writes the file, or compares what was called with what was recorded.
   *
   * @throws TritonError INVALID_ARG in the mode `replay`, for inferences that were recorded and not called.
   */
  done(): Promise<void>;
}

/**
 * Opens a client of a server whose calls a test run records, and later runs replay without a server. Headers, tokens,
 * time limits and signals are not recorded.
 *
 * A replayed call is answered by the first recorded call of the same inputs and options that has not answered yet. Calls
 * that only look, such as `isModelReady` and `getModelConfig`, may come any number of times. Another inference rejects,
 * and the error says where it differs from the next recorded call.
 *
 * @throws TritonError INVALID_ARG for a file that cannot be replayed.
 * @example
 * ```ts
 * await using recording = await openRecording({
 *   file: new URL("./calls.json", import.meta.url),
 *   mode: process.env.RECORD ? "record" : "replay",
 *   open: () => new InferenceServerClient("localhost:8000"),
 * });
 * const client = createClient<Models>(recording.client);
 * ```
 */
export async function openRecording<S extends object>(
  options: RecordingOptions<S>,
): Promise<CallRecording<S>> {
  const { file, mode, open } = options;
  const path = typeof file === "string" ? file : fileURLToPath(file);
  if (mode === "replay") return new Replay<S>(path, await readCalls(path)).recording;
  if (mode !== "record") throw invalid(`mode: expected "record" or "replay", got '${String(mode)}'`);
  return new Recorder<S>(path, open()).recording;
}

async function readCalls(path: string): Promise<PlainCall[]> {
  try {
    const { calls } = JSON.parse(await readFile(path, "utf8")) as { calls?: PlainCall[] };
    if (Array.isArray(calls)) return calls;
    throw new Error("it has no list of calls");
  } catch (cause) {
    const advice = 'record it with mode: "record"';
    throw invalid(`cannot replay ${path}: ${(cause as Error).message}: ${advice}`, cause);
  }
}

function invalid(message: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT", cause });
}

/** Methods that return an async iterable. */
const STREAMS: ReadonlySet<string> = new Set(["streamInfer", "generateStream"]);

/** Methods each of whose calls is expected as often as it was recorded. */
const INFERENCES: ReadonlySet<string> = new Set(["infer", "generate", ...STREAMS]);

type Method = (...args: readonly unknown[]) => unknown;

/** An object that answers every method by its name. */
function clientOf<S>(call: (name: string, args: readonly unknown[]) => unknown, close: () => void): S {
  const methods = new Map<string | symbol, unknown>([
    ["close", close],
    [Symbol.dispose ?? Symbol.for("Symbol.dispose"), close],
    [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose"), async () => close()],
    // A promise of the client is not resolved by calling the server.
    ["then", undefined],
  ]);
  return new Proxy(
    {},
    {
      get: (_, name) => {
        if (methods.has(name) || typeof name === "symbol") return methods.get(name);
        const method = (...args: readonly unknown[]) => call(name, args);
        methods.set(name, method);
        return method;
      },
    },
  ) as S;
}

class Recorder<S extends object> {
  readonly #calls: PlainCall[] = [];
  #done: Promise<void> | undefined;

  constructor(
    private readonly path: string,
    private readonly server: S,
  ) {}

  get recording(): CallRecording<S> {
    const client = clientOf<S>(
      (name, args) => this.#call(name, args),
      () => this.#close(),
    );
    const done = () => {
      this.#done ??= this.#write();
      return this.#done;
    };
    return { client, done, [Symbol.asyncDispose]: done };
  }

  #call(name: string, args: readonly unknown[]): unknown {
    const method = (this.server as Readonly<Record<string, Method>>)[name];
    if (typeof method !== "function") throw new TypeError(`the client has no method '${name}'`);
    const call = plainCall(name, args);
    this.#calls.push(call);
    if (STREAMS.has(name))
      return this.#stream(call, method.apply(this.server, [...args]) as AsyncIterable<unknown>);
    return this.#answer(call, method.apply(this.server, [...args]) as Promise<unknown>);
  }

  async #answer(call: PlainCall, answer: Promise<unknown>): Promise<unknown> {
    try {
      const value = await answer;
      if (value instanceof InferResult) Object.assign(call, plainResult(value));
      else call.answer = toPlain(value);
      return value;
    } catch (error) {
      call.error = plainError(error);
      throw error;
    }
  }

  async *#stream(call: PlainCall, answers: AsyncIterable<unknown>): AsyncGenerator<unknown, void, void> {
    const seen: unknown[] = [];
    call.answers = seen;
    try {
      for await (const answer of answers) {
        seen.push(toPlain(answer));
        yield answer;
      }
    } catch (error) {
      call.error = plainError(error);
      throw error;
    }
  }

  #close(): void {
    (this.server as { close?(): void }).close?.();
  }

  async #write(): Promise<void> {
    this.#close();
    await mkdir(dirname(this.path), { recursive: true });
    await writeFile(this.path, `${JSON.stringify({ calls: this.#calls }, null, 2)}\n`);
  }
}

class Replay<S extends object> {
  readonly #answered = new Set<PlainCall>();
  #count = 0;

  constructor(
    private readonly path: string,
    private readonly calls: readonly PlainCall[],
  ) {}

  get recording(): CallRecording<S> {
    const client = clientOf<S>(
      (name, args) => this.#call(name, args),
      () => {},
    );
    const done = async () => this.#checkAll();
    return { client, done, [Symbol.asyncDispose]: done };
  }

  #call(name: string, args: readonly unknown[]): unknown {
    if (STREAMS.has(name)) return this.#stream(name, args);
    return this.#answer(name, args);
  }

  async #answer(name: string, args: readonly unknown[]): Promise<unknown> {
    const call = this.#find(name, args);
    if (call.error !== undefined) throw fromPlain(call.error);
    if (call.responses === undefined) return fromPlain(call.answer);
    return resultOf(call);
  }

  async *#stream(name: string, args: readonly unknown[]): AsyncGenerator<unknown, void, void> {
    const call = this.#find(name, args);
    for (const answer of call.answers ?? []) yield fromPlain(answer);
    if (call.error !== undefined) throw fromPlain(call.error);
  }

  /** @throws TritonError INVALID_ARG for a call that was not recorded */
  #find(name: string, args: readonly unknown[]): PlainCall {
    const isInference = INFERENCES.has(name);
    if (isInference) this.#count++;
    const asked = plainCall(name, args);
    const same = this.calls.filter((call) => call.call === name && differenceOf(asked, call) === undefined);
    const fresh = same.find((call) => !this.#answered.has(call));
    const found = fresh ?? (isInference ? undefined : same.at(-1));
    if (found !== undefined) {
      this.#answered.add(found);
      return found;
    }
    const what = `${isInference ? `call ${this.#count}, ` : ""}${name}() of ${subjectOf(asked)}`;
    if (same.length > 0)
      throw invalid(`replay of ${this.path}: ${what}: expected ${same.length} such calls, got one more`);
    const next = this.calls.find((call) => call.call === name && !this.#answered.has(call));
    if (next === undefined)
      throw invalid(`replay of ${this.path}: ${what}: no such call is left in the recording`);
    const place = this.calls.filter(({ call }) => INFERENCES.has(call) === isInference).indexOf(next) + 1;
    throw invalid(
      `replay of ${this.path}: ${what} differs from recorded call ${place}: ${differenceOf(asked, next)}`,
    );
  }

  #checkAll(): void {
    const left = this.calls.filter((call) => INFERENCES.has(call.call) && !this.#answered.has(call));
    if (left.length === 0) return;
    const [first] = left;
    const others = left.length === 1 ? "" : `, and ${left.length - 1} more`;
    throw invalid(
      `replay of ${this.path}: expected ${first!.call}() of ${subjectOf(first!)}, which was not called${others}`,
    );
  }
}

function subjectOf({ model, args }: PlainCall): string {
  const name = model ?? args[0];
  return typeof name === "string" ? `model '${name}'` : "the server";
}

/** Describes where a call differs from a recorded one; undefined if it does not. */
function differenceOf(asked: PlainCall, recorded: PlainCall): string | undefined {
  if (asked.model !== recorded.model) return `expected model '${recorded.model}', got '${asked.model}'`;
  const names = new Set([...Object.keys(recorded.inputs ?? {}), ...Object.keys(asked.inputs ?? {})]);
  for (const name of names) {
    const [got, expected] = [asked.inputs?.[name], recorded.inputs?.[name]];
    if (expected === undefined) return `input '${name}' is not in it`;
    if (got === undefined) return `input '${name}' is missing`;
    const difference = tensorDifference(tensorOf(got), tensorOf(expected));
    if (difference !== undefined) return `input '${name}': ${difference}`;
  }
  const [got, expected] = [JSON.stringify(asked.args), JSON.stringify(recorded.args)];
  return got === expected ? undefined : `expected ${short(expected)}, got ${short(got)}`;
}

const tensorOf = (plain: PlainTensor): Tensor => tensorOfPlain(plain, "input");

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}

/*
 * Calls of a client as JSON. Inferences have the inputs and responses of `RecordedAnswer` of `@tritonjs/testing`, so
 * that a fake model answers them too.
 */

/** A call and its answer, as the file of a recording has them. */
interface PlainCall {
  /** Name of the method. */
  readonly call: string;
  /** Name of the model of an inference. */
  readonly model?: string;
  readonly inputs?: Readonly<Record<string, PlainTensor>>;
  /** The other arguments, without headers, time limits and signals. */
  readonly args: readonly unknown[];
  /** Outputs of an inference. */
  responses?: readonly Readonly<Record<string, PlainTensor>>[];
  answer?: unknown;
  /** Answers of a stream. */
  answers?: readonly unknown[];
  error?: unknown;
}

/** Options of a call that say nothing about its answer, or that do not belong into a file. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "signal",
  "timeoutMs",
  "headers",
  "query",
  "requestCompression",
  "responseCompression",
]);

/** Writes a call that has no answer yet. */
function plainCall(name: string, args: readonly unknown[]): PlainCall {
  if (name !== "infer") return { call: name, args: args.map((arg) => withoutOptions(toPlain(arg))) };
  const [model, call] = args as [string, { readonly inputs: Readonly<Record<string, unknown>> }];
  const { inputs = {}, ...rest } = call ?? {};
  const tensors = Object.entries(inputs).flatMap(([input, value]) => {
    if (value === undefined || value === null) return [];
    const shared = isSharedMemoryInput(value as never);
    return shared ? [] : [[input, plainTensor(inputTensor(input, value as never))] as const];
  });
  return { call: name, model, inputs: Object.fromEntries(tensors), args: [withoutOptions(toPlain(rest))] };
}

function withoutOptions(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => !LEFT_OUT.has(name)));
}

/** Writes the answer to an inference. */
function plainResult(result: InferResult): Pick<PlainCall, "responses" | "answer"> {
  const { id, modelName, modelVersion, parameters, tensors } = result;
  return {
    responses: [Object.fromEntries([...tensors].map(([name, tensor]) => [name, plainTensor(tensor)]))],
    answer: toPlain({ id, modelName, modelVersion, parameters }),
  };
}

/** Reads the answer to an inference. */
function resultOf({ responses, answer }: PlainCall): unknown {
  return fromPlain({ [RESULT]: { ...(answer as object), outputs: responses?.[0] ?? {} } });
}

function plainError(error: unknown): unknown {
  return toPlain(TritonError.from(error));
}

/** Keys of values that JSON lacks. */
const TENSOR = "$tensor";
const RESULT = "$result";
const ERROR = "$error";
const BIGINT = "$bigint";
const BYTES = "$bytes";

/** Writes any value of a call as JSON. Functions and signals are left out. */
function toPlain(value: unknown): unknown {
  if (typeof value === "bigint") return { [BIGINT]: String(value) };
  if (typeof value !== "object" || value === null) return typeof value === "function" ? undefined : value;
  if (value instanceof Tensor) return { [TENSOR]: plainTensor(value) };
  if (value instanceof InferResult) {
    const { responses, answer } = plainResult(value);
    return { [RESULT]: { ...(answer as object), outputs: responses![0] } };
  }
  if (TritonError.is(value)) {
    const { code, reason, message } = value;
    return { [ERROR]: { code, ...(reason !== undefined && { reason }), message } };
  }
  if (value instanceof Uint8Array) return { [BYTES]: toBase64(value) };
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return Array.from(value as unknown as unknown[], toPlain);
  if (value instanceof AbortSignal || Symbol.asyncIterator in value || Symbol.iterator in value)
    return undefined;
  const members = Object.entries(value).map(([name, member]) => [name, toPlain(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

/** Reads what `toPlain` wrote. */
function fromPlain(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fromPlain);
  const plain = value as Readonly<Record<string, unknown>>;
  if (BIGINT in plain) return BigInt(plain[BIGINT] as string);
  if (BYTES in plain) return Uint8Array.from(atob(plain[BYTES] as string), (one) => one.charCodeAt(0));
  if (TENSOR in plain) return tensorOfPlain(plain[TENSOR] as PlainTensor, "tensor of a recording");
  if (ERROR in plain) {
    const { code, reason, message } = plain[ERROR] as TritonError;
    return new TritonError(code, message, reason === undefined ? {} : { reason });
  }
  if (RESULT in plain) {
    const { outputs, ...rest } = plain[RESULT] as { outputs: Readonly<Record<string, PlainTensor>> };
    const tensors = Object.entries(outputs).map(([name, tensor]) => {
      return [name, tensorOfPlain(tensor, `output '${name}' of a recording`)] as const;
    });
    return new InferResult({
      ...(fromPlain(rest) as Pick<InferResult, "id" | "modelName" | "modelVersion" | "parameters">),
      tensors: new Map(tensors),
      sharedMemoryOutputs: new Map(),
      response: undefined,
    });
  }
  return Object.fromEntries(Object.entries(plain).map(([name, member]) => [name, fromPlain(member)]));
}
