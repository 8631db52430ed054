/*
 * `@tritonjs/frontend-threads`: HTTP and gRPC frontends in worker threads that share their ports.
 */
export { inThreads } from "./engine/in-threads.js";
