/** Parameters of a load that replace the contents of the model's directory. */
export interface LoadParameters {
  /** The configuration in JSON, instead of `config.pbtxt`. */
  readonly config?: string | undefined;
  /**
   * The files of the model by their paths in its directory (`1/model.onnx`), instead of all files on disk. Requires
   * `config`.
   */
  readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** Parameters of an unload. */
export interface UnloadParameters {
  /**
   * Also unload the models that the model is made of, unless another model needs them or they were loaded by their own
   * names.
   */
  readonly unloadDependents?: boolean | undefined;
}
