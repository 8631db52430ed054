/*
 * What the clients of HTTP and gRPC have in common, beside tensors: `@tritonjs/core/client`. As there, nothing that this
 * leads to imports a module of Node.js or names one of its globals.
 */
export { AnsweredTensors, type ArrayOf, type SharedMemoryOutput } from "./answered-tensors.js";
export { cancelled, unlessAborted } from "./cancelled.js";
export { ConcurrencyGate } from "./concurrency-gate.js";
export { onAbort } from "./on-abort.js";
export { type Failure, type RetryPolicy, retryDelay } from "./retry.js";
