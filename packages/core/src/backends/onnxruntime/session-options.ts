import { availableParallelism } from "node:os";
import { definedMembers } from "@tritonjs/protocol";
import type { OnnxRuntimeOptions } from "./options.js";

/** Options of a session that are the same for all models. */
export type SessionSettings = Omit<
  OnnxRuntimeOptions,
  "model" | "engine" | "executionProviders" | "strictProviders" | "onWarning"
>;

/** ONNX Runtime also throws the errors that it writes. Its warnings concern graphs, not faults. */
const FATAL_ALONE = 4;

/**
 * Converts the options to the form that `onnxruntime-node` takes.
 *
 * @param instanceCount sessions that share the processors
 */
export function sessionOptions(
  settings: SessionSettings,
  instanceCount: number,
): Readonly<Record<string, unknown>> {
  const { sessionConfig, intraOpNumThreads, logSeverityLevel, ...others } = settings;
  return {
    ...definedMembers(others),
    intraOpNumThreads: intraOpNumThreads ?? Math.max(1, Math.floor(availableParallelism() / instanceCount)),
    logSeverityLevel: logSeverityLevel ?? FATAL_ALONE,
    extra: { ...DEFAULT_ENTRIES, ...sessionConfig },
  };
}

/**
 * Makes idle threads sleep. By default they spin and take the processor from the event loop and from other sessions.
 */
const DEFAULT_ENTRIES: Readonly<Record<string, string>> = { "session.intra_op.allow_spinning": "0" };
