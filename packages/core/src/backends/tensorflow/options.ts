/** Runtimes of TensorFlow.js models: a package, or a backend of the package `tfjs`. */
export type TensorflowRuntime = "tfjs-node-gpu" | "tfjs-node" | "wasm" | "cpu";

/** Options of {@link tensorflow}. */
export interface TensorflowOptions {
  /**
   * Path of a `model.json` of TensorFlow.js (GraphModel or LayersModel) with its weights beside it, or of the directory
   * of a SavedModel. Only `@tensorflow/tfjs-node` and `@tensorflow/tfjs-node-gpu` can read a SavedModel.
   */
  readonly model: string | URL;
  /**
   * The runtime of the model.
   * @default the first that is installed: `@tensorflow/tfjs-node` (on a GPU instance `@tensorflow/tfjs-node-gpu`),
   * `@tensorflow/tfjs` with `@tensorflow/tfjs-backend-wasm`, `@tensorflow/tfjs` with its backend `cpu`
   */
  readonly runtime?: TensorflowRuntime;
  /** Signature of a SavedModel. @default "serving_default" */
  readonly signature?: string;
}
