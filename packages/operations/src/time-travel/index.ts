/*
 * `@tritonjs/operations/time-travel`: recordings of the scheduling of a server, replayed to the same batches, and why one
 * request was late. A server without a recording loads nothing of it.
 */
export {
  type Explanation,
  explainRequest,
  type RecordedBatch,
  type RecordedRequest,
  type Timeline,
  timelineOf,
} from "./explain.js";
export { type ReplayDifference, replayScheduling, type SchedulingReplay } from "./player.js";
export { recordScheduling, type SchedulingRecording, type SchedulingRecordingOptions } from "./recorder.js";
export { Tape } from "./tape.js";
