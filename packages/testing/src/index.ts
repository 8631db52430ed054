/*
 * `@tritonjs/testing`: what tests of a program with models need. Clocks that are passed as a parameter, models that
 * compute nothing, faults by name, comparisons of tensors, and checks of a model. A program that only serves models loads
 * nothing of it.
 */
export { type Clock, InferenceRequest, realClock, type Timer, VirtualClock } from "@tritonjs/core/internal";
export {
  type CheckedModel,
  type CheckModelOptions,
  type CheckName,
  type CheckOutcome,
  checkModel,
  type ModelReport,
} from "./check-model.js";
export { type SchedulerDelay, withSchedulerDelay } from "./delayed-schedulers.js";
export {
  type FakeAnswers,
  type FakeModelOptions,
  fakeBackend,
  fakeModel,
  type RecordedAnswer,
} from "./fake-model.js";
export { type FaultName, type FaultOptions, Faults } from "./faults.js";
export {
  assertTensorSnapshot,
  assertTensors,
  type ComparedTensor,
  type ComparedTensors,
  outputsDifference,
  type SnapshotOptions,
  type TensorMatchers,
  tensorMatchers,
} from "./tensor-assertions.js";
