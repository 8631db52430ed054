export type { LoadGenerator } from "./load/load-generator.js";
export type { LoadLevel } from "./load/load-level.js";
export type { GeneratorUsage, KeptResponses, LoadWindow, RequestRecords } from "./load/request-records.js";
export { readTrace } from "./replay/read-trace.js";
export { type Recording, recordingOf } from "./replay/recording.js";
export { type ReplayConfig, type ReplayOptions, type ReplayResult, replay } from "./replay/replay.js";
export { type ReplayTerminal, runReplay } from "./replay/replay-command.js";
export type { ReplayFigures } from "./replay/replay-figures.js";
export { replayText } from "./replay/replay-report.js";
export type { TraceBatch, TraceRequest } from "./replay/trace-request.js";
export {
  type SimulatedRequest,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from "./simulate/simulate.js";
export type { BatchTimes, SimulatedBatch } from "./simulate/simulated-backend.js";
