import {
  inputTensor,
  type PlainTensor,
  plainTensor,
  Tensor,
  TritonError,
  tensorOfPlain,
  toBase64,
} from "@tritonjs/protocol";
import { isSharedMemoryInput } from "../infer-request.js";
import { InferResult } from "../infer-result.js";

/*
 * Calls of a client as JSON. Inferences have the inputs and responses of `RecordedAnswer` of `@tritonjs/core/testing`, so
 * that a fake model answers them too.
 */

/** A call and its answer, as the file of a recording has them. */
export interface PlainCall {
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
export function plainCall(name: string, args: readonly unknown[]): PlainCall {
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
export function plainResult(result: InferResult): Pick<PlainCall, "responses" | "answer"> {
  const { id, modelName, modelVersion, parameters, tensors } = result;
  return {
    responses: [Object.fromEntries([...tensors].map(([name, tensor]) => [name, plainTensor(tensor)]))],
    answer: toPlain({ id, modelName, modelVersion, parameters }),
  };
}

/** Reads the answer to an inference. */
export function resultOf({ responses, answer }: PlainCall): unknown {
  return fromPlain({ [RESULT]: { ...(answer as object), outputs: responses?.[0] ?? {} } });
}

export function plainError(error: unknown): unknown {
  return toPlain(TritonError.from(error));
}

/** Keys of values that JSON lacks. */
const TENSOR = "$tensor";
const RESULT = "$result";
const ERROR = "$error";
const BIGINT = "$bigint";
const BYTES = "$bytes";

/** Writes any value of a call as JSON. Functions and signals are left out. */
export function toPlain(value: unknown): unknown {
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
export function fromPlain(value: unknown): unknown {
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
