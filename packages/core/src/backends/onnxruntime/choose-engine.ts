import { type InstanceHosting, TritonError } from "@tritonjs/protocol";
import { PARALLEL_RUNS } from "./native/native-lanes.js";
import { loadOrtApi, type OrtApi } from "./native/ort-api.js";
import type { ExecutionProvider, OnnxEngine } from "./options.js";

/** Properties of an instance that decide on its engine. */
export interface EngineUse {
  readonly providers: readonly ExecutionProvider[];
  readonly hosting: Pick<InstanceHosting, "isolation" | "heapLimitMb">;
  readonly instanceCount: number;
}

/** The engine of an instance: ONNX Runtime's C interface, or the reason why it runs in a worker. */
export type ChosenEngine = { readonly api: OrtApi } | { readonly reason: string | undefined };

/**
 * Chooses the engine of an instance.
 *
 * @throws TritonError if the engine `native` is asked for and cannot be used
 */
export function chooseEngine(engine: OnnxEngine, use: EngineUse): ChosenEngine {
  if (engine === "worker") return { reason: undefined };
  const obstacle = obstacleOf(use);
  if (engine === "native") {
    if (obstacle === undefined) return { api: loadOrtApi() };
    throw new TritonError("INVALID_ARG", `engine 'native': ${obstacle}; use the engine 'worker'`, {
      reason: "INVALID_CONFIG",
    });
  }
  const { instanceCount } = use;
  if (obstacle !== undefined) return { reason: obstacle };
  if (instanceCount > PARALLEL_RUNS) {
    const poolSize = instanceCount + 2;
    return {
      reason:
        `libuv's pool runs ${PARALLEL_RUNS} batches at a time, and the model has ${instanceCount} instances; start the ` +
        `program with UV_THREADPOOL_SIZE=${poolSize}`,
    };
  }
  try {
    return { api: loadOrtApi() };
  } catch (error) {
    return { reason: TritonError.from(error).message };
  }
}

/** Why the engine `native` cannot run an instance. */
function obstacleOf({ providers, hosting }: EngineUse): string | undefined {
  const [first] = providers;
  const provider = typeof first === "string" ? first : first?.name;
  if (provider !== "cpu") return `expected the execution provider 'cpu', got '${provider}'`;
  if (hosting.isolation !== undefined)
    return `expected instances without isolation, got '${hosting.isolation}'`;
  if (hosting.heapLimitMb !== undefined)
    return "expected instances without heapLimitMb, which limits a worker";
  return undefined;
}
