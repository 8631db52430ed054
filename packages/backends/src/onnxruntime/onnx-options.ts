import { keyList } from "@tritonjs/core/internal/worker";

/** An execution provider of ONNX Runtime: its name, or its name with options. */
export type ExecutionProvider = string | { readonly name: string; readonly [option: string]: unknown };

/**
 * How ONNX Runtime is called. `worker`: each instance is a thread or a process with a session of its own. `native`:
 * through ONNX Runtime's C interface in this process, with one session for all instances. `auto`: `native` where the
 * machine and the model allow it, else `worker`, with the reason in the log.
 */
export type OnnxEngine = "worker" | "native" | "auto";

export const ONNX_ENGINES = keyList<Record<OnnxEngine, true>>({ worker: true, native: true, auto: true });

/** Options of {@link onnxruntime}. */
export interface OnnxRuntimeOptions {
  /** Path of the `.onnx` file, or its bytes. */
  readonly model: string | URL | Uint8Array;
  /**
   * How ONNX Runtime is called. `native` needs the package `koffi`, the provider `cpu`, and instances without
   * `isolation`. @default "worker"
   */
  readonly engine?: OnnxEngine;
  /**
   * Providers in order of preference. A provider that cannot be used is skipped with a warning, and the next is tried.
   * The last resort is `cpu`.
   * @default ["cpu"]
   */
  readonly executionProviders?: readonly ExecutionProvider[];
  /** Fail instead of falling back to a provider further down the list. @default false */
  readonly strictProviders?: boolean;
  /**
   * Threads inside an operator. The default keeps sessions from competing for cores.
   * @default cores / instances, at least 1
   */
  readonly intraOpNumThreads?: number;
  /** Threads between operators. @default ONNX Runtime's */
  readonly interOpNumThreads?: number;
  /** Whether independent operators may run at the same time. @default "sequential" */
  readonly executionMode?: "sequential" | "parallel";
  /** Reuse the memory of past runs. @default true */
  readonly enableCpuMemArena?: boolean;
  /** Plan the memory of a run from the previous run. @default true */
  readonly enableMemPattern?: boolean;
  /** @default "all" */
  readonly graphOptimizationLevel?: "disabled" | "basic" | "extended" | "layout" | "all";
  /**
   * Entries of ONNX Runtime's session configuration by key, in addition to the options above.
   * @default { "session.intra_op.allow_spinning": "0" }
   */
  readonly sessionConfig?: Readonly<Record<string, string>>;
  /**
   * Least severity of the messages that ONNX Runtime writes to stderr: 0 for all, 2 for warnings, 4 for fatal errors
   * only.
   * @default 4, because errors are thrown
   */
  readonly logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  /** Called when a provider cannot be used. @default process.emitWarning */
  readonly onWarning?: (message: string) => void;
}

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
