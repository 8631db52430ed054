/** Turns the files of one framework into an ONNX file. */
export interface ModelImporter {
  /** The framework or format, for texts. */
  readonly format: string;
  /** Whether it reads a file or directory. */
  recognizes(path: ImportPath): boolean;
  /**
   * Writes the ONNX file into a folder.
   *
   * @returns its path
   * @throws TritonError INVALID_ARG for files that are damaged, UNSUPPORTED that names an operator and its node
   */
  toOnnx(path: string, folder: string, options: ImportOptions): Promise<string>;
}

/** Settings of importers. */
export interface ImportOptions {
  /** Python of steps that need one. @default TRITONJS_PYTHON, or python3 */
  readonly python?: string;
  /** Shapes of the inputs without the rows, for files that do not have them: those of PyTorch. */
  readonly shapes?: Readonly<Record<string, readonly number[]>>;
  /** Data types of the inputs of such files. @default FP32 */
  readonly dtypes?: Readonly<Record<string, string>>;
}

/** Signs by which a model is recognised. */
export interface ImportPath {
  readonly path: string;
  readonly isDirectory: boolean;
  /** The first bytes of a file; none of a directory. */
  readonly head: Buffer;
}
