/*
 * `@tritonjs/core/testing`: clocks that are passed as a parameter, so that tests of scheduling do not wait, and the
 * request that a fake service answers.
 */
export { type Clock, realClock, type Timer } from "./clock/clock.js";
export { VirtualClock } from "./clock/virtual-clock.js";
export { PendingRequest } from "./request/pending-request.js";
