/*
 * Sessions and runs of the engine `native`, which are loaded together.
 */

export { BoundRun } from "./bound-run.js";
export { DirectRun } from "./direct-run.js";
export { NativeRun } from "./native-run.js";
export { describeSession, NativeModel } from "./native-session.js";
