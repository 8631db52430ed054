/**
 * `@tritonjs/backends/classes`: classes with `load` and `predict` as models, in JavaScript and Python, and the
 * `model-settings.json` of MLServer.
 *
 * @module
 */

export type { PredictContext, ServedClass, ServedModel } from "./class-model.js";
export { type ClassReference, modelSettings, parseClassReference } from "./model-settings.js";
