export { InferenceRequest } from "../../packages/core/src/request/inference-request.js";
export { FairShares } from "../../packages/core/src/scheduler/fair-shares.js";
