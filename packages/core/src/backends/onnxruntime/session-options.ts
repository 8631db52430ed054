import { availableParallelism } from "node:os";
import type { OnnxRuntimeOptions } from "./options.js";

/** Options of a session, as they are for all models. */
export type SessionSettings = Omit<
  OnnxRuntimeOptions,
  "model" | "executionProviders" | "strictProviders" | "onWarning"
>;

/** What ONNX Runtime writes as errors is thrown as well, and its warnings speak of graphs, not of faults. */
const FATAL_ALONE = 4;

/**
 * The options in the form that `onnxruntime-node` takes.
 *
 * @param instanceCount sessions that share the processors
 */
export function sessionOptions(
  settings: SessionSettings,
  instanceCount: number,
): Readonly<Record<string, unknown>> {
  const { sessionConfig, intraOpNumThreads, logSeverityLevel, ...others } = settings;
  const given = Object.entries(others).filter(([, value]) => value !== undefined);
  return {
    ...Object.fromEntries(given),
    intraOpNumThreads: intraOpNumThreads ?? Math.max(1, Math.floor(availableParallelism() / instanceCount)),
    logSeverityLevel: logSeverityLevel ?? FATAL_ALONE,
    extra: { ...DEFAULT_ENTRIES, ...sessionConfig },
  };
}

/**
 * Threads that wait for work in a busy loop take the processor from the event loop and from other sessions: they sleep
 * instead.
 */
const DEFAULT_ENTRIES: Readonly<Record<string, string>> = { "session.intra_op.allow_spinning": "0" };
