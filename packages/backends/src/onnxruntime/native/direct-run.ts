import type { Tensor } from "@tritonjs/protocol";
import type { SessionData } from "../onnx-options.js";
import { describeSession, NativeModel, type NativeSession } from "./native-session.js";
import { copyOutput, tensorValue } from "./native-values.js";
import { CStrings, loadOrtApi, type OrtApi } from "./ort-c-api.js";

/**
 * A session over ONNX Runtime's C interface that runs on the thread of its caller. Outputs can be written to memory of
 * the caller, which may be that of inputs: an operator that appends to keys and values then copies none of them.
 */
export class DirectRun {
  readonly #inputNames: CStrings;
  readonly #outputNames: CStrings;
  readonly #inputValues: BigUint64Array;
  readonly #outputValues: BigUint64Array;
  readonly #options: number;
  /** Values over tensors of the last run. A tensor that is used again needs no new one. */
  #values = new Map<Tensor, number>();

  /**
   * Opens a session on the CPU.
   *
   * @throws TritonError UNAVAILABLE without koffi or a library of ONNX Runtime, UNSUPPORTED on Bun, INVALID_ARG for a
   * model that does not load
   */
  static async open(data: SessionData, warn: (message: string) => void): Promise<DirectRun> {
    const api = loadOrtApi();
    const model = new NativeModel(() => data, warn);
    return new DirectRun(api, model, await model.acquire(api));
  }

  private constructor(
    private readonly api: OrtApi,
    private readonly model: NativeModel,
    private readonly session: NativeSession,
  ) {
    const [inputs, outputs] = [session.inputs, session.outputs].map((all) => all.map(({ name }) => name));
    this.#inputNames = new CStrings(api, inputs!);
    this.#outputNames = new CStrings(api, outputs!);
    this.#inputValues = new BigUint64Array(inputs!.length + 1);
    this.#outputValues = new BigUint64Array(outputs!.length + 1);
    this.#options = api.read((to) => api.createRunOptions(to));
  }

  /** The tensors of the session. */
  get description(): ReturnType<typeof describeSession> {
    return describeSession(this.session);
  }

  /**
   * Runs the graph, and returns when it is done.
   *
   * @param names outputs to compute
   * @param into memory of outputs, by name, in the shapes that the run gives them
   * @throws TritonError INTERNAL with ONNX Runtime's words
   */
  run(
    inputs: ReadonlyMap<string, Tensor>,
    names: readonly string[],
    into: ReadonlyMap<string, Tensor>,
  ): Map<string, Tensor> {
    const { api } = this;
    const values = new Map<Tensor, number>();
    const valueFor = (tensor: Tensor): bigint => {
      const value = values.get(tensor) ?? this.#values.get(tensor) ?? tensorValue(api, tensor, tensor.shape);
      values.set(tensor, value);
      return BigInt(value);
    };
    try {
      for (const [i, name] of [...inputs.keys()].entries())
        this.#inputValues[i] = valueFor(inputs.get(name)!);
      for (const [i, name] of names.entries()) {
        const tensor = into.get(name);
        this.#outputValues[i] = tensor === undefined ? 0n : valueFor(tensor);
      }
      this.#inputNames.choose([...inputs.keys()]);
      this.#outputNames.choose(names);
      const { koffi } = api;
      const status = api.run(
        this.session.address,
        this.#options,
        this.#inputNames.address,
        Number(koffi.address(this.#inputValues)),
        inputs.size,
        this.#outputNames.address,
        names.length,
        Number(koffi.address(this.#outputValues)),
      );
      api.check(status);
      return new Map(
        names.map((name, i) => [name, into.get(name) ?? this.#taken(name, Number(this.#outputValues[i]))]),
      );
    } finally {
      for (const [tensor, value] of this.#values) if (!values.has(tensor)) api.releaseValue(value);
      this.#values = values;
    }
  }

  /** Copies an output that ONNX Runtime has allocated, and releases it. */
  #taken(name: string, value: number): Tensor {
    try {
      return copyOutput(this.api, name, value);
    } finally {
      this.api.releaseValue(value);
    }
  }

  async release(): Promise<void> {
    for (const value of this.#values.values()) this.api.releaseValue(value);
    this.#values.clear();
    this.api.releaseRunOptions(this.#options);
    await this.model.release();
  }
}
