/** What {@link python} takes. */
export interface PythonOptions {
  /** Path of a `model.py` with a class `TritonPythonModel`. */
  readonly model: string | URL;
  /**
   * The program that runs it: a path, or a name to be found in PATH. Python 3.8 or newer, with numpy.
   * @default the environment variable TRITONJS_PYTHON, or `python3`
   */
  readonly python?: string;
  /** What the model finds in `parameters` of its configuration, as their `string_value`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Environment variables of its processes, beside those of this one; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long Python may take to start, and the model to finalize. @default 30 */
  readonly stubTimeoutSeconds?: number;
  /** How long the model may take to load, in each instance. @default 3600 */
  readonly loadTimeoutSeconds?: number;
}
