export { analyze } from "./analyze/command/analyze-command.js";
export type { AnalyzeTerminal } from "./analyze/command/analyze-run.js";
export type { BoundVariant, CreateTriton } from "./analyze/real/module-machine.js";
export type { DataOptions } from "./data/data-options.js";
export type { DataSet, OpenAiDataSet, TensorDataSet } from "./data/data-set.js";
export { loadDataSet } from "./data/load-data-set.js";
export { loadOpenAiData } from "./data/load-openai-data.js";
export type { TestedModel } from "./data/tested-model.js";
export type { LoadGenerator } from "./load/load-generator.js";
export type { LoadLevel } from "./load/load-level.js";
export type { LoadOptions } from "./load/load-options.js";
export type { GeneratorUsage, KeptResponses, LoadWindow, RequestRecords } from "./load/request-records.js";
export { startLoadGenerator } from "./load/start-load-generator.js";
export { perf } from "./perf/perf.js";
export type { PerfTerminal } from "./perf/perf-terminal.js";
export { readTrace } from "./replay/read-trace.js";
export { type Recording, recordingOf } from "./replay/recording.js";
export { type ReplayConfig, type ReplayOptions, type ReplayResult, replay } from "./replay/replay.js";
export { type ReplayTerminal, replayTrace } from "./replay/replay-command.js";
export type { ReplayFigures } from "./replay/replay-figures.js";
export { replayText } from "./replay/replay-report.js";
export type { TraceBatch, TraceRequest, TraceTransport } from "./replay/trace-request.js";
export {
  type ClosedLoop,
  type SimulatedRequest,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from "./simulate/simulate.js";
export type { BatchTimes, SimulatedBatch } from "./simulate/simulated-backend.js";
export { readModel } from "./target/read-model.js";
export type { TargetOptions } from "./target/target-options.js";
export { type ChromeEvent, type ChromeTrace, chromeTrace } from "./trace/chrome-trace.js";
export { traceSummaryText } from "./trace/summary-text.js";
export { inspectTrace, type TraceTerminal } from "./trace/trace-command.js";
export {
  type ModelTraceSummary,
  summarizeTrace,
  type TraceDurations,
  type TraceSummary,
} from "./trace/trace-summary.js";
