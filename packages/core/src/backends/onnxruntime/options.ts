/** An execution provider of ONNX Runtime: its name, or its name with options. */
export type ExecutionProvider = string | { readonly name: string; readonly [option: string]: unknown };

/** What {@link onnxruntime} takes. */
export interface OnnxRuntimeOptions {
  /** Path of the `.onnx` file, or its bytes. */
  readonly model: string | URL | Uint8Array;
  /**
   * Providers in order of preference. One that cannot be used is left out with a warning, and the next is tried;
   * the last resort is `cpu`.
   * @default ["cpu"]
   */
  readonly executionProviders?: readonly ExecutionProvider[];
  /** Fail instead of falling back to a provider further down the list. @default false */
  readonly strictProviders?: boolean;
  /** Threads inside an operator. @default cores / instances, at least 1: sessions must not fight for cores */
  readonly intraOpNumThreads?: number;
  /** Threads between operators. @default ONNX Runtime's */
  readonly interOpNumThreads?: number;
  /** Whether operators that do not need each other may run at the same time. @default "sequential" */
  readonly executionMode?: "sequential" | "parallel";
  /** Keep memory of past runs for the next. @default true */
  readonly enableCpuMemArena?: boolean;
  /** Plan the memory of a run from the one before. @default true */
  readonly enableMemPattern?: boolean;
  /** @default "all" */
  readonly graphOptimizationLevel?: "disabled" | "basic" | "extended" | "layout" | "all";
  /**
   * Entries of ONNX Runtime's session configuration, by their keys, beside those above.
   * @default { "session.intra_op.allow_spinning": "0" }
   */
  readonly sessionConfig?: Readonly<Record<string, string>>;
  /** What ONNX Runtime writes to stderr: from 0, all, over 2, warnings, to 4, fatal errors alone. @default 4: errors are thrown */
  readonly logSeverityLevel?: 0 | 1 | 2 | 3 | 4;
  /** Told when a provider could not be used. @default process.emitWarning */
  readonly onWarning?: (message: string) => void;
}
