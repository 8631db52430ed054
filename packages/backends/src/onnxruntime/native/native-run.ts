import type { Tensors } from "@tritonjs/core/internal";
import { elementCount, type ModelConfig, Tensor, typedArrayFor } from "@tritonjs/protocol";
import type { SessionData } from "../onnx-options.js";
import { outputNamesOf } from "../ort-session.js";
import { scalarInputs } from "../ort-tensors.js";
import { callAsync, type NativeSession, type NativeTensor } from "./native-session.js";
import { copyOutput, outputDataType, ShapePrediction, tensorValue, valueOver } from "./native-values.js";
import { CStrings } from "./ort-c-api.js";
import { StagingMemory } from "./staging-memory.js";

/** ONNX Runtime's words, in old and new versions, for an output that does not have the shape of its memory. */
export const OTHER_SHAPE = /shape verification failed|output OrtValue provided for output/i;

/** Runs batches of one instance on a session, one at a time, and ends the running one. */
export class NativeRun {
  /** Memory in which inputs are joined. */
  readonly memory = new StagingMemory();
  readonly details: Readonly<Record<string, string>> = {};
  readonly #scalars: ReadonlySet<string>;
  readonly #inputNames: CStrings;
  readonly #outputs: ReadonlyMap<string, NativeTensor>;
  readonly #outputNames: CStrings;
  readonly #inputValues: BigUint64Array;
  readonly #outputValues: BigUint64Array;
  readonly #shapes: ShapePrediction;
  /** False once an output had another shape than predicted: the file then declares a wrong one. */
  #predicts = true;
  readonly #options: number;
  #ended = false;

  constructor(
    readonly session: NativeSession,
    data: SessionData,
    config: ModelConfig,
  ) {
    const { api, inputs, outputs } = session;
    this.#scalars = scalarInputs(data, config);
    const names = inputs.map(({ name }) => name);
    this.#inputNames = new CStrings(api, names);
    this.#outputs = new Map(outputs.map((output) => [output.name, output]));
    const outputNames = outputNamesOf(config);
    this.#outputNames = new CStrings(api, outputNames);
    this.#inputValues = new BigUint64Array(inputs.length + 1);
    this.#outputValues = new BigUint64Array(outputNames.length + 1);
    this.#shapes = new ShapePrediction(inputs);
    this.#options = api.read((to) => api.createRunOptions(to));
    for (const [key, value] of Object.entries(data.native.runConfig ?? {})) {
      api.check(api.addRunConfigEntry(this.#options, key, String(value)));
    }
  }

  /** Whether it uses an input where it is. Its inputs are in memory of the CPU. */
  takes(): boolean {
    return false;
  }

  /** Ends the running batch before its next operator. */
  end(): void {
    const { api } = this.session;
    this.#ended = true;
    api.check(api.runOptionsSetTerminate(this.#options));
  }

  /** Releases the memory of ONNX Runtime. No batch may run. */
  close(): void {
    this.session.api.releaseRunOptions(this.#options);
  }

  /**
   * Runs a batch on a thread of libuv's pool.
   *
   * @param outputs names of the outputs to compute
   * @throws TritonError INTERNAL with ONNX Runtime's words, also for a batch that was ended
   */
  async run(inputs: Tensors, outputs: readonly string[]): Promise<Map<string, Tensor>> {
    const { api, address } = this.session;
    try {
      const held = this.#fillInputs(inputs);
      const prepared = this.#prepareOutputs(inputs, outputs);
      this.#outputNames.choose(outputs);
      const { koffi } = api;
      const status = await callAsync(
        [held, prepared],
        api.run,
        address,
        this.#options,
        this.#inputNames.address,
        Number(koffi.address(this.#inputValues)),
        this.#inputNames.length,
        this.#outputNames.address,
        this.#outputNames.length,
        Number(koffi.address(this.#outputValues)),
      );
      api.check(status);
      const outputOf = (name: string, i: number) =>
        prepared[i] ?? copyOutput(api, name, Number(this.#outputValues[i]));
      return new Map(outputs.map((name, i) => [name, outputOf(name, i)]));
    } catch (error) {
      if (!this.#predicts || !OTHER_SHAPE.test(String(error))) throw error;
      this.#predicts = false;
    } finally {
      this.#release();
    }
    return this.run(inputs, outputs);
  }

  /** Makes the values of the inputs, and returns the arrays under them. */
  #fillInputs(inputs: Tensors): readonly unknown[] {
    const { api } = this.session;
    return this.session.inputs.map(({ name }, i) => {
      const tensor = inputs.get(name);
      if (tensor === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
      const shape = this.#scalars.has(name) ? [] : tensor.shape;
      const value = tensorValue(api, tensor, shape);
      this.#inputValues[i] = BigInt(value);
      return tensor.elements;
    });
  }

  /** Makes the memory of the outputs whose shape is known. ONNX Runtime allocates the others. */
  #prepareOutputs(inputs: Tensors, outputs: readonly string[]): readonly (Tensor | undefined)[] {
    if (!this.#predicts) return [];
    const { api } = this.session;
    return outputs.map((wanted, i) => {
      const output = this.#outputs.get(wanted);
      const shape = output && this.#shapes.predict(output, (input) => inputs.get(input)?.shape);
      if (output === undefined || shape === undefined) return undefined;
      const datatype = outputDataType(wanted, output.elementType);
      const count = elementCount(shape);
      if (datatype === "BYTES" || count === 0) return undefined;
      const elements = new (typedArrayFor(datatype))(count);
      this.#outputValues[i] = BigInt(valueOver(api, elements, output.elementType, shape));
      return Tensor.fromElements(datatype, shape, elements);
    });
  }

  #release(): void {
    const { api } = this.session;
    for (const values of [this.#inputValues, this.#outputValues]) {
      for (let i = 0; i < values.length; i++) {
        if (values[i] !== 0n) api.releaseValue(Number(values[i]));
        values[i] = 0n;
      }
    }
    if (this.#ended) api.check(api.runOptionsUnsetTerminate(this.#options));
    this.#ended = false;
  }
}
