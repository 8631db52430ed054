/** What a model is loaded with instead of what its directory has. */
export interface LoadParameters {
  /** The configuration in JSON, in place of `config.pbtxt`. */
  readonly config?: string | undefined;
  /**
   * The files of the model by their paths in its directory (`1/model.onnx`), in place of all that is on disk; asks for
   * `config` too.
   */
  readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
}

/** How a model is unloaded. */
export interface UnloadParameters {
  /** Unload what the model is made of too, unless something else needs it or it was loaded by its own name. */
  readonly unloadDependents?: boolean | undefined;
}
