import type { SessionData } from "../create-session.js";
import type { OrtApi } from "./ort-api.js";

/** ONNX Runtime's numbers of the graph optimization levels. */
const LEVELS: Readonly<Record<string, number>> = { disabled: 0, basic: 1, extended: 2, layout: 3, all: 99 };

/**
 * Makes the options of a session, as `onnxruntime-node` does from the same settings. The caller releases them.
 *
 * @returns the address of the options
 * @throws TritonError INTERNAL for values that ONNX Runtime refuses
 */
export function createSettings(api: OrtApi, { sessionOptions: settings }: SessionData): number {
  const options = api.read((to) => api.createSessionOptions(to));
  try {
    const { graphOptimizationLevel = "all", executionMode, extra } = settings;
    api.check(api.setSessionGraphOptimizationLevel(options, LEVELS[String(graphOptimizationLevel)]!));
    api.check(api.setSessionExecutionMode(options, executionMode === "parallel" ? 1 : 0));
    api.check(api.setIntraOpNumThreads(options, Number(settings.intraOpNumThreads)));
    if (settings.interOpNumThreads !== undefined)
      api.check(api.setInterOpNumThreads(options, Number(settings.interOpNumThreads)));
    if (settings.enableCpuMemArena === false) api.check(api.disableCpuMemArena(options));
    if (settings.enableMemPattern === false) api.check(api.disableMemPattern(options));
    api.check(api.setSessionLogSeverityLevel(options, Number(settings.logSeverityLevel)));
    for (const [key, value] of Object.entries(extra as Readonly<Record<string, string>>)) {
      api.check(api.addSessionConfigEntry(options, key, String(value)));
    }
    return options;
  } catch (error) {
    api.releaseSessionOptions(options);
    throw error;
  }
}
