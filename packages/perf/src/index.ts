export { analyze } from "./analyze/analyze.js";
export type { BoundVariant, CreateTriton } from "./analyze/served-machines.js";
export { processTerminal, type Terminal } from "./command/terminal.js";
export type { ToolTerminal } from "./command/tool-command.js";
export type { DataOptions, DataSet, OpenAiDataSet, TensorDataSet, TestedModel } from "./data/data-set.js";
export { loadDataSet, loadOpenAiData } from "./data/load-data-set.js";
export type { LoadGenerator, LoadOptions } from "./load/load-generator.js";
export { startLoadGenerator } from "./load/load-generator.js";
export type { LoadLevel } from "./load/load-level.js";
export type { GeneratorUsage, KeptResponses, LoadWindow, RequestRecords } from "./load/request-records.js";
export type {
  OptimizeGoal,
  VariantChoice,
  VariantLimits,
  VariantReport,
  VariantRun,
} from "./optimize/choose-variant.js";
export { type OptimizeOptions, type OptimizeResult, optimize } from "./optimize/optimize.js";
export type { SampleOptions } from "./optimize/optimize-samples.js";
export { perf } from "./perf/perf.js";
export type { BatchTimes, SimulatedBatch } from "./simulate/simulate.js";
export {
  type ClosedLoop,
  type SimulatedRequest,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from "./simulate/simulate.js";
export { readModel } from "./target/read-model.js";
export type { TargetOptions } from "./target/target-options.js";
export {
  type ChromeEvent,
  type ChromeTrace,
  chromeTrace,
  inspectTrace,
  type ModelTraceSummary,
  summarizeTrace,
  type TraceDurations,
  type TraceSummary,
  traceSummaryText,
} from "./trace/inspect-trace.js";
export {
  type ReplayConfig,
  type ReplayFigures,
  type ReplayOptions,
  type ReplayPrediction,
  type ReplayResult,
  replay,
} from "./trace/predict.js";
export type { TraceBatch, TraceRequest, TraceTransport } from "./trace/read-trace.js";
export { readTrace } from "./trace/read-trace.js";
export { type Recording, recordingOf } from "./trace/recording.js";
export {
  replayText,
  replayTrace,
} from "./trace/replay.js";
export {
  type AnswersReport,
  type AnswerTarget,
  type CaptureRow,
  type OutputDifferences,
  openAnswerTarget,
  type ReplayAnswersOptions,
  type ReplayedAnswer,
  readCapture,
  replayAnswers,
} from "./trace/replay-answers.js";
export type { ClassFigures } from "./trace/replay-classes.js";
