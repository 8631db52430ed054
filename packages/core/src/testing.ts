export { InferenceRequest } from "./request/inference-request.js";
/*
 * `@tritonjs/core/testing`: clocks that are passed as a parameter, so that tests of scheduling do not wait, and the
 * request that a fake service answers.
 */
export { type Clock, realClock, type Timer } from "./system/clock.js";
export { VirtualClock } from "./system/virtual-clock.js";
