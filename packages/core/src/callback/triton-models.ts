/**
 * Models whose tensors the compiler knows. `triton.infer("resnet", ...)` is typed for a model that is listed here, and so
 * is the handle that `triton.bind({ modelName: "resnet", ... })` returns without `inputs` and `outputs`. A call with any
 * other name takes and returns tensors of any kind. The file that `tritonjs types` writes adds the models of
 * repositories and of model files:
 *
 * ```ts
 * declare module "@tritonjs/core" {
 *   interface TritonModels {
 *     resnet: {
 *       inputs: [{ name: "image"; dtype: "FP32"; shape: [3, 224, 224] }];
 *       outputs: [{ name: "label"; dtype: "FP32"; shape: [1000] }];
 *     };
 *   }
 * }
 * ```
 */
// biome-ignore lint/suspicious/noEmptyInterface: module augmentation fills it
export interface TritonModels {}
