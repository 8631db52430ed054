import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { type DeviceId, heldByInstance } from "@tritonjs/core/internal";
import {
  type ArrayOf,
  type DataType,
  type DescribedTensor,
  errorFor,
  type Tensor,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { describeOnnxModel, lacksShapes, readOnnxFile } from "./describe-onnx-model.js";
import type { DirectRun } from "./native/direct-run.js";
import type { NativeOptions, OnnxRuntimeOptions } from "./onnx-options.js";
import { openSessionOf, providerName, providersFor, sessionOptions } from "./ort-session.js";
import { fromResults, sessionTensors, toFeeds } from "./ort-tensors.js";

/** The options of {@link openSession}: those of `onnxruntime` without the model and what only engines have. */
export interface OnnxSessionOptions
  extends Omit<OnnxRuntimeOptions, "model" | "engine" | keyof NativeOptions> {
  /**
   * Opens a session that can write outputs over inputs, if it runs on the CPU and the package `koffi` is installed;
   * `writesInPlace` of the session says so. @default false
   */
  readonly inPlace?: boolean | undefined;
}

/**
 * Opens an ONNX model on the device of an instance, for a callback to run: with `cuda` on the instance's GPU, or on the
 * CPU. `executionProviders` selects others. The first call of an instance opens the session; later calls return the
 * same session. The session ends with the instance.
 *
 * A session runs on the thread of the callback and blocks it. A callback that runs models therefore belongs in a
 * module, whose instances are workers.
 *
 * @param model path of the `.onnx` file, or its bytes
 * @param instance the context of a callback, or the argument of `initialize`
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that does not load, UNSUPPORTED for types
 * that cannot pass through Node, UNAVAILABLE when `onnxruntime-node` is not installed.
 * @example
 * ```ts
 * export default batch(async ({ x }, context) => {
 *   const session = await openSession(new URL("./iris.onnx", import.meta.url), context);
 *   return session.run<{ scores: "FP32" }>({ measurements: x });
 * });
 * ```
 */
export function openSession(
  model: string | URL | Uint8Array,
  instance: { readonly device: DeviceId },
  options: OnnxSessionOptions = {},
): Promise<OnnxSession> {
  const file = model instanceof URL ? fileURLToPath(model) : model;
  const { onWarning, ...rest } = options;
  const key = `onnx ${typeof file === "string" ? file : digestOf(file)} ${JSON.stringify(rest)}`;
  return heldByInstance(
    instance,
    key,
    () => OnnxSession.open(file, instance, options),
    (session) => session.release(),
  );
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** An ONNX model that is open on the device of an instance. */
export class OnnxSession {
  readonly #session: InferenceSession | DirectRun;
  readonly #scalars: ReadonlySet<string>;

  private constructor(
    session: InferenceSession | DirectRun,
    /** The execution provider that the session runs on. */
    readonly provider: string,
    /** Tensors as the file declares them, with all their dimensions. */
    readonly inputs: readonly DescribedTensor[],
    readonly outputs: readonly DescribedTensor[],
  ) {
    this.#session = session;
    const scalars = inputs.filter(({ shape, rankUnknown }) => shape.length === 0 && !rankUnknown);
    this.#scalars = new Set(scalars.map(({ name }) => name));
  }

  /** @internal */
  static async open(
    model: string | Uint8Array,
    { device }: { readonly device: DeviceId },
    {
      executionProviders,
      strictProviders = false,
      onWarning,
      inPlace = false,
      ...settings
    }: OnnxSessionOptions,
  ): Promise<OnnxSession> {
    // Reports faults of the file without opening a session.
    const described = readOnnxFile(model);
    if (!lacksShapes(described)) describeOnnxModel(model, undefined, described);
    const data = {
      model,
      providers: providersFor(device, executionProviders),
      strict: strictProviders,
      sessionOptions: sessionOptions(settings, 1),
      scalars: [],
      ranksUnknown: [],
      native: {},
    };
    const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
    const direct = inPlace ? await openDirect(data, warn) : undefined;
    const { session, provider } =
      direct === undefined ? await openSessionOf(data, warn) : { session: direct, provider: "cpu" };
    const tensors = isDirect(session) ? session.description : sessionTensors(session);
    const { inputs, outputs } = describeOnnxModel(model, tensors, described);
    return new OnnxSession(session, provider, inputs, outputs);
  }

  /**
   * Runs the model once.
   *
   * @typeParam O the data types of the outputs, by name
   * @param inputs ndarrays, typed arrays or nested arrays by name
   * @param names outputs to compute; all by default
   * @throws TritonError INVALID_ARG for unknown or invalid inputs; errors of ONNX Runtime pass through
   */
  async run<O extends Readonly<Record<string, DataType>> = Readonly<Record<string, DataType>>>(
    inputs: Readonly<Record<string, unknown>>,
    names: readonly string[] = this.outputs.map(({ name }) => name),
  ): Promise<{ [Name in keyof O]: ArrayOf<O[Name]> }> {
    const results = await this.runTensors(this.#tensors(inputs), names);
    const arrays = [...results].map(([name, tensor]) => [name, toNdArray(tensor)]);
    return Object.fromEntries(arrays) as { [Name in keyof O]: ArrayOf<O[Name]> };
  }

  /** True if outputs can be written over inputs, so that `runTensors` takes their memory. */
  get writesInPlace(): boolean {
    return isDirect(this.#session);
  }

  /**
   * Runs the model once on tensors, without copies. The outputs may be inputs of the next run.
   *
   * @param inputs tensors by name, with all their dimensions
   * @param names outputs to compute
   * @param into memory of outputs by name, in the shapes that the run gives them, for a session that writes in place.
   * A tensor may also be an input, if the operators that use it allow that
   * @throws errors of ONNX Runtime
   */
  async runTensors(
    inputs: ReadonlyMap<string, Tensor>,
    names: readonly string[] = this.outputs.map(({ name }) => name),
    into: ReadonlyMap<string, Tensor> = new Map(),
  ): Promise<Map<string, Tensor>> {
    const session = this.#session;
    if (!isDirect(session)) return fromResults(await session.run(toFeeds(inputs, this.#scalars), names));
    // As with onnxruntime-node, messages are received between two runs.
    await new Promise((resolve) => setImmediate(resolve));
    const shaped = [...inputs].map(([name, tensor]): [string, Tensor] => [
      name,
      this.#scalars.has(name) && tensor.shape.length > 0 ? tensor.reshaped([]) : tensor,
    ]);
    return session.run(new Map(shaped), names, into);
  }

  /** @internal */
  release(): Promise<void> {
    return this.#session.release();
  }

  #tensors(given: Readonly<Record<string, unknown>>): Map<string, Tensor> {
    const unknown = Object.keys(given).find((name) => !this.inputs.some((input) => input.name === name));
    const missing = this.inputs.find(({ name }) => given[name] === undefined);
    if (unknown !== undefined || missing !== undefined) {
      const got = Object.keys(given).join(", ");
      const expected = this.inputs.map(({ name }) => name).join(", ");
      throw errorFor("INVALID_CONFIG", `inputs of the ONNX model: expected [${expected}], got [${got}]`);
    }
    return new Map(
      this.inputs.map(({ name, dtype, shape }) => [
        name,
        tensorFromValue(given[name], {
          what: `input '${name}' of the ONNX model`,
          datatype: dtype,
          shape,
          takesScalar: true,
        }),
      ]),
    );
  }
}

function isDirect(session: InferenceSession | DirectRun): session is DirectRun {
  return "description" in session;
}

/** Opens a session that writes in place; undefined where none can be had. */
async function openDirect(
  data: Parameters<typeof DirectRun.open>[0],
  warn: (message: string) => void,
): Promise<DirectRun | undefined> {
  if (data.isWasm || providerName(data.providers[0]!) !== "cpu") return undefined;
  try {
    const { DirectRun } = await import("./native/native-engine.js");
    return await DirectRun.open(data, warn);
  } catch (error) {
    const { reason } = TritonError.from(error);
    if (reason === "PACKAGE_NOT_INSTALLED" || reason === "PLATFORM_NOT_SUPPORTED") return undefined;
    throw error;
  }
}
