/** What runs TensorFlow.js models: the package, and with `tfjs` which of its backends. */
export type TensorflowRuntime = "tfjs-node-gpu" | "tfjs-node" | "wasm" | "cpu";

/** What {@link tensorflow} takes. */
export interface TensorflowOptions {
  /**
   * Path of a `model.json` of TensorFlow.js (GraphModel or LayersModel), with its weights beside it, or of the
   * directory of a SavedModel, which only `@tensorflow/tfjs-node` and `@tensorflow/tfjs-node-gpu` can read.
   */
  readonly model: string | URL;
  /**
   * What runs it.
   * @default the first that is installed: `@tensorflow/tfjs-node` (on a GPU instance `@tensorflow/tfjs-node-gpu`),
   * `@tensorflow/tfjs` with `@tensorflow/tfjs-backend-wasm`, `@tensorflow/tfjs` with its backend `cpu`
   */
  readonly runtime?: TensorflowRuntime;
  /** Of a SavedModel. @default "serving_default" */
  readonly signature?: string;
}
