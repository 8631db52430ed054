import type { Tensors } from "@tritonjs/core/internal";
import { elementCount, type ModelConfig, Tensor, typedArrayFor } from "@tritonjs/protocol";
import { DeviceValue, DeviceValues } from "./device-values.js";
import { callAsync, type NativeSession, type NativeTensor, typeAndShape } from "./native-session.js";
import { copyOutput, outputDataType, ShapePrediction, tensorValue, valueOver } from "./native-values.js";
import type { SessionData } from "./onnx-options.js";
import { scalarInputs } from "./ort-tensors.js";

/** Inputs below this size are bound on the event loop, because a thread of the pool costs more than their copy. */
const SMALL_BYTES = 64 * 1024;

/** Stands for an output that the file does not have. */
const UNKNOWN: Pick<NativeTensor, "elementType" | "dims" | "dimNames"> = {
  elementType: 0,
  dims: [],
  dimNames: [],
};

/**
 * Runs batches of one instance on a device, one at a time, with `OrtIoBinding`: inputs that are on the device already
 * are used there, the others are copied to it, and outputs stay on it or are written to memory of the CPU.
 *
 * ```
 * from the CPU: tensor --copy--> bound input                     bound output --copy--> tensor: for the CPU
 *                                            \                  /
 * a tensor with a source: ------- bound input --> RunWithBinding --> bound output --> a tensor with a source
 * ```
 */
export class BoundRun {
  /** Tensors that were copied to the device, and from it. */
  copiesIn = 0;
  copiesOut = 0;
  readonly #scalars: ReadonlySet<string>;
  readonly #outputs: ReadonlyMap<string, NativeTensor>;
  readonly #shapes: ShapePrediction;
  readonly #binding: number;
  readonly #options: number;
  #ended = false;
  readonly #values: DeviceValues;

  constructor(
    readonly session: NativeSession,
    data: SessionData,
    config: ModelConfig,
  ) {
    const { api, inputs, outputs, address } = session;
    this.#scalars = scalarInputs(data, config);
    this.#outputs = new Map(outputs.map((output) => [output.name, output]));
    this.#shapes = new ShapePrediction(inputs);
    this.#options = api.read((to) => api.createRunOptions(to));
    for (const [key, value] of Object.entries(data.native.runConfig ?? {})) {
      api.check(api.addRunConfigEntry(this.#options, key, String(value)));
    }
    this.#values = DeviceValues.of(session);
    this.#binding = api.read((to) => api.createIoBinding(address, to));
  }

  /** Whether it uses an input where it is, without a copy. */
  takes(name: string, tensor: Tensor): boolean {
    const shape = this.#scalars.has(name) ? [] : tensor.shape;
    return tensor.source instanceof DeviceValue && tensor.source.valueFor(this.session, shape) !== undefined;
  }

  /** Ends the running batch before its next operator. */
  end(): void {
    const { api } = this.session;
    this.#ended = true;
    api.check(api.runOptionsSetTerminate(this.#options));
  }

  /** Releases the memory of ONNX Runtime. No batch may run. */
  close(): void {
    const { api } = this.session;
    api.releaseIoBinding(this.#binding);
    api.releaseRunOptions(this.#options);
  }

  /**
   * Runs a batch on a thread of libuv's pool.
   *
   * @param outputs names of the outputs to compute
   * @param kept names of outputs that may stay on the device
   * @throws TritonError INTERNAL with ONNX Runtime's words, also for a batch that was ended
   */
  async run(
    inputs: Tensors,
    outputs: readonly string[],
    kept: ReadonlySet<string> | undefined,
  ): Promise<Map<string, Tensor>> {
    const { api, address } = this.session;
    const values: number[] = [];
    try {
      const held: unknown[] = [inputs];
      for (const { name } of this.session.inputs) await this.#bindInput(name, inputs, values, held);
      const prepared = outputs.map((name) => this.#bindOutput(name, inputs, kept, values));
      held.push(prepared);
      api.check(await callAsync(held, api.runWithBinding, address, this.#options, this.#binding));
      return this.#takeOutputs(outputs, prepared);
    } finally {
      api.clearBoundInputs(this.#binding);
      api.clearBoundOutputs(this.#binding);
      for (const value of values) api.releaseValue(value);
      if (this.#ended) api.check(api.runOptionsUnsetTerminate(this.#options));
      this.#ended = false;
    }
  }

  async #bindInput(name: string, inputs: Tensors, values: number[], held: unknown[]): Promise<void> {
    const { api } = this.session;
    const tensor = inputs.get(name);
    if (tensor === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
    const shape = this.#scalars.has(name) ? [] : tensor.shape;
    const there =
      tensor.source instanceof DeviceValue ? tensor.source.valueFor(this.session, shape) : undefined;
    if (there !== undefined) {
      api.check(api.bindInput(this.#binding, name, there));
      return;
    }
    const value = tensorValue(api, tensor, shape);
    values.push(value);
    held.push(tensor.elements);
    this.copiesIn++;
    const bind = api.bindInput;
    api.check(
      tensor.byteLength < SMALL_BYTES
        ? bind(this.#binding, name, value)
        : await callAsync(held, bind, this.#binding, name, value),
    );
  }

  /** Binds an output to the device, to memory of JavaScript if its shape is known, or to memory of ONNX Runtime. */
  #bindOutput(
    name: string,
    inputs: Tensors,
    kept: ReadonlySet<string> | undefined,
    values: number[],
  ): Tensor | "kept" | undefined {
    const { api, deviceMemory } = this.session;
    const { elementType, dims, dimNames } = this.#outputs.get(name) ?? UNKNOWN;
    const datatype = outputDataType(name, elementType);
    if (kept?.has(name) && datatype !== "BYTES" && this.#values.hasRoom()) {
      api.check(api.bindOutputToDevice(this.#binding, name, deviceMemory!.info));
      return "kept";
    }
    this.copiesOut++;
    const shape = this.#shapes.predict({ dims, dimNames }, (input) => inputs.get(input)?.shape);
    const count = shape === undefined ? 0 : elementCount(shape);
    if (shape === undefined || count === 0 || datatype === "BYTES") {
      api.check(api.bindOutputToDevice(this.#binding, name, api.cpuMemory));
      return undefined;
    }
    const elements = new (typedArrayFor(datatype))(count);
    const value = valueOver(api, elements, elementType, shape);
    values.push(value);
    api.check(api.bindOutput(this.#binding, name, value));
    return Tensor.fromElements(datatype, shape, elements);
  }

  #takeOutputs(
    outputs: readonly string[],
    prepared: readonly (Tensor | "kept" | undefined)[],
  ): Map<string, Tensor> {
    const { api } = this.session;
    const out = new BigUint64Array(2);
    const at = Number(api.koffi.address(out));
    api.check(api.getBoundOutputValues(this.#binding, api.allocator, at, at + 8));
    const list = api.koffi.decode(out[0]!, "uint64", prepared.length) as ArrayLike<number | bigint>;
    const values = Array.from(list, Number);
    api.check(api.allocatorFree(api.allocator, Number(out[0])));
    return new Map(
      prepared.map((ready, i) => {
        const name = outputs[i]!;
        const value = values[i]!;
        if (ready !== "kept") {
          const tensor = ready ?? copyOutput(api, name, value);
          api.releaseValue(value);
          return [name, tensor];
        }
        const info = api.read((to) => api.getTensorTypeAndShape(value, to));
        const { elementType, dims } = typeAndShape(api, info);
        api.releaseTensorTypeAndShapeInfo(info);
        const datatype = outputDataType(name, elementType) as "FP32";
        return [name, this.#values.tensorOver(value, datatype, elementType, dims)];
      }),
    );
  }
}
