export { InferenceRequest } from "../../packages/core/src/request/inference-request.js";
export { FairShares } from "../../packages/scheduling/src/fair-shares.js";
