import { isMainThread } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import type { Ort } from "./import-onnx-runtime.js";
import type { ExecutionProvider } from "./options.js";

/** The data that a worker needs to open its session. It survives structured cloning. */
export interface SessionData {
  readonly model: string | Uint8Array;
  readonly providers: readonly ExecutionProvider[];
  readonly strict: boolean;
  readonly sessionOptions: Readonly<Record<string, unknown>>;
  /** Inputs that have no dimensions in the model's file. */
  readonly scalars: readonly string[];
  /** Inputs whose rank the model's file leaves open. */
  readonly ranksUnknown: readonly string[];
}

/** An open session and the provider that it runs on. */
export interface OpenSession {
  readonly session: InferenceSession;
  readonly provider: string;
}

/**
 * Opens a session on the first provider that works. ONNX Runtime's Node binding rejects a list of providers when the
 * first is missing. So this function tries one provider at a time and calls `warn` before each fallback.
 *
 * @throws TritonError with ONNX Runtime's words when no provider works, or with `strict` when the first does not.
 */
export async function createSession(
  ort: Ort,
  data: SessionData,
  warn: (message: string) => void,
): Promise<OpenSession> {
  const chain = data.strict ? data.providers.slice(0, 1) : withCpu(data.providers);
  let failure: unknown;
  for (const [i, provider] of chain.entries()) {
    try {
      return { session: await open(ort, data, provider), provider: nameOf(provider) };
    } catch (error) {
      failure = error;
      const next = chain[i + 1];
      if (next !== undefined) {
        warn(
          `execution provider '${nameOf(provider)}' cannot be used: ${messageOf(error)}; trying '${nameOf(next)}'`,
        );
      }
    }
  }
  const model = typeof data.model === "string" ? `'${data.model}'` : "given as bytes";
  throw new TritonError("INVALID_ARG", `cannot load the ONNX model ${model}: ${messageOf(failure)}`, {
    reason: "INVALID_MODEL",
    cause: failure,
  });
}

async function open(ort: Ort, data: SessionData, provider: ExecutionProvider): Promise<InferenceSession> {
  if (nameOf(provider) === "webgpu" && !isMainThread) {
    throw new TritonError(
      "UNSUPPORTED",
      "it crashes when two threads of a process use it: set isolation 'process' for the instance",
      { reason: "PLATFORM_NOT_SUPPORTED" },
    );
  }
  const options = {
    ...data.sessionOptions,
    executionProviders: [provider],
  } as InferenceSession.SessionOptions;
  return typeof data.model === "string"
    ? ort.InferenceSession.create(data.model, options)
    : ort.InferenceSession.create(data.model, options);
}

function withCpu(providers: readonly ExecutionProvider[]): readonly ExecutionProvider[] {
  return providers.some((provider) => nameOf(provider) === "cpu") ? providers : [...providers, "cpu"];
}

function nameOf(provider: ExecutionProvider): string {
  return typeof provider === "string" ? provider : provider.name;
}

function messageOf(error: unknown): string {
  return TritonError.from(error).message.split("\n")[0]!;
}
