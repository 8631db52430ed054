import type { Tensors } from "@tritonjs/core/internal";
import {
  elementByteSize,
  elementCount,
  type HeldCudaMemory,
  type ModelConfig,
  type Shape,
  Tensor,
  type TensorSource,
  type TypedArray,
  toOnnxType,
  typedArrayFor,
} from "@tritonjs/protocol";
import type { CudaPools } from "../../gpu/cuda-pools.js";
import { CudaGraphs } from "../cuda-graphs.js";
import type { SessionData } from "../onnx-options.js";
import { scalarInputs } from "../ort-tensors.js";
import { type BoundTensor, type Bucket, DeviceBuffers, placeOf } from "./device-buffers.js";
import { DeviceCopies, type PlacedShape, SMALL_BYTES } from "./device-copies.js";
import { DeviceValue, DeviceValues } from "./device-values.js";
import { OTHER_SHAPE } from "./native-run.js";
import { callAsync, type NativeSession, type NativeTensor, typeAndShape } from "./native-session.js";
import {
  copyOutput,
  outputDataType,
  ShapePrediction,
  tensorValue,
  valueAt,
  valueOver,
} from "./native-values.js";
import { StagingMemory } from "./staging-memory.js";

/** The run option that names the CUDA graph of a run, and its value for a run without one. */
const GRAPH_OPTION = "gpu_graph_id";
const NO_GRAPH = -1;

/** Fate of an output of one run. */
interface PreparedOutput {
  /** The tensor that is ready after the run; undefined if ONNX Runtime allocates the output. */
  readonly tensor?: Tensor;
  /** Whether the output stays on the device. */
  readonly isKept?: boolean;
  /** Where the output is on the GPU, if its bucket has a place for it. */
  readonly placed?: PlacedShape;
}

/** The shapes of one run, and where its tensors are bound. */
interface RunPlan {
  /** The outputs to compute. */
  readonly outputs: readonly NativeTensor[];
  readonly shapeOf: (input: string) => Shape | undefined;
  /** Shapes to which inputs are padded for a graph. */
  readonly paddedOf: (input: string) => Shape | undefined;
  /** Undefined if ONNX Runtime copies the tensors of this run. */
  readonly bucket: Bucket | undefined;
}

/**
 * Runs batches of one instance on a device, one at a time, with `OrtIoBinding`: inputs that are on the device already
 * are used there, the others are copied to it, and outputs stay on it or are written to memory of the CPU.
 *
 * ```
 * from the CPU: tensor --copy--> bound input                     bound output --copy--> tensor: for the CPU
 *                                            \                  /
 * a tensor with a source: ------- bound input --> RunWithBinding --> bound output --> a tensor with a source
 * ```
 *
 * With CUDA, bound inputs and outputs are kept by shape ({@link DeviceBuffers}), and the copies are CUDA's own, through
 * pinned memory. On other devices, or if the pool of a GPU has no room, ONNX Runtime allocates and copies in each run.
 */
export class BoundRun {
  /** Tensors that were copied to the device, and from it. */
  copiesIn = 0;
  copiesOut = 0;
  /** Runs that replayed or captured a CUDA graph. */
  graphRuns = 0;
  /** Memory of the CPU in which inputs are joined. */
  readonly memory: StagingMemory;
  readonly #scalars: ReadonlySet<string>;
  readonly #outputs: ReadonlyMap<string, NativeTensor>;
  readonly #shapes: ShapePrediction;
  /** False once an output had another shape than predicted: the file then declares a wrong one. */
  #predicts = true;
  readonly #binding: number;
  /** Options of runs by the number of their CUDA graph. */
  readonly #options = new Map<number, number>();
  readonly #buffers: DeviceBuffers | undefined;
  readonly #copies: DeviceCopies | undefined;
  readonly #graphs: CudaGraphs | undefined;
  readonly #isOutputPinned: boolean;
  /** Pinned memory in which outputs arrive. */
  readonly #arrivals: StagingMemory;
  #running: number | undefined;
  #ended = false;
  readonly #values: DeviceValues;

  constructor(
    readonly session: NativeSession,
    private readonly data: SessionData,
    config: ModelConfig,
    pools: CudaPools | undefined,
  ) {
    const { api, inputs, outputs, address } = session;
    const { inputPinnedMemory, outputPinnedMemory } = config.optimization ?? {};
    this.#scalars = scalarInputs(data, config);
    this.#outputs = new Map(outputs.map((output) => [output.name, output]));
    this.#shapes = new ShapePrediction(inputs);
    this.#values = DeviceValues.of(session);
    this.#binding = api.read((to) => api.createIoBinding(address, to));
    this.#buffers = DeviceBuffers.open(session, pools);
    this.#copies = this.#buffers && new DeviceCopies(this.#buffers.stream, session.deviceMemory!.cudaDevice!);
    this.memory = new StagingMemory(
      this.#buffers !== undefined && inputPinnedMemory?.enable !== false ? pools : undefined,
    );
    this.#isOutputPinned = this.#buffers !== undefined && outputPinnedMemory?.enable !== false;
    this.#arrivals = new StagingMemory(this.#isOutputPinned ? pools : undefined);
    const names = inputs.map(({ name }) => name);
    this.#graphs = session.capturesGraphs ? new CudaGraphs(config, names) : undefined;
  }

  /** Figures of this instance: copies, and memory in use. */
  get details(): Readonly<Record<string, string>> {
    const figures = {
      copiesToDevice: this.copiesIn,
      copiesFromDevice: this.copiesOut,
      ...(this.#buffers !== undefined && {
        boundShapes: this.#buffers.bucketCount,
        boundBytes: this.#buffers.byteSize,
        pinnedBytes: this.memory.pinnedBytes + this.#arrivals.pinnedBytes,
      }),
      ...(this.session.capturesGraphs && { graphRuns: this.graphRuns }),
    };
    return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, String(value)]));
  }

  /** Whether it uses an input where it is, without a copy over the CPU. */
  takes(name: string, tensor: Tensor): boolean {
    return this.#hasValue(name, tensor) || (tensor.source !== undefined && this.#isOnGpu(tensor.source));
  }

  #hasValue(name: string, { source, shape }: Tensor): boolean {
    const inModel = this.#scalars.has(name) ? [] : shape;
    return source instanceof DeviceValue && source.valueFor(this.session, inModel) !== undefined;
  }

  /** Whether memory of this GPU is used where it is, whoever has allocated it. */
  #isOnGpu({ cuda }: TensorSource): boolean {
    return cuda !== undefined && cuda.deviceId === this.session.deviceMemory?.cudaDevice;
  }

  /** Ends the running batch before its next operator. */
  end(): void {
    const { api } = this.session;
    if (this.#running === undefined) return;
    this.#ended = true;
    api.check(api.runOptionsSetTerminate(this.#running));
  }

  /** Releases the memory of ONNX Runtime and of the pools. No batch may run. */
  close(): void {
    const { api } = this.session;
    this.#buffers?.close();
    this.memory.close();
    this.#arrivals.close();
    api.releaseIoBinding(this.#binding);
    for (const options of this.#options.values()) api.releaseRunOptions(options);
  }

  /**
   * Runs a batch on a thread of libuv's pool.
   *
   * @param outputs names of the outputs to compute
   * @param kept names of outputs that may stay on the device
   * @param rows rows of the batch
   * @throws TritonError INTERNAL with the words of ONNX Runtime or of CUDA, also for a batch that was ended
   */
  async run(
    inputs: Tensors,
    outputs: readonly string[],
    kept: ReadonlySet<string> | undefined,
    rows: number,
  ): Promise<Map<string, Tensor>> {
    const { api, address } = this.session;
    const plan = this.#plan(inputs, outputs, kept, rows);
    const { bucket } = plan;
    const binding = bucket?.binding ?? this.#binding;
    const options = this.#optionsOf(bucket?.graph ?? NO_GRAPH);
    const values: number[] = [];
    const memories: HeldCudaMemory[] = [];
    this.#running = options;
    try {
      const held: unknown[] = [inputs];
      let copied = 0;
      for (const { name } of this.session.inputs) {
        copied += await this.#bindInput(name, inputs, plan, values, memories, held);
      }
      if (copied > 0) await this.#copies!.wait(copied);
      const prepared = plan.outputs.map((output) => this.#bindOutput(output, plan, kept, values));
      held.push(prepared);
      api.check(await callAsync(held, api.runWithBinding, address, options, binding));
      if (bucket?.graph !== undefined) this.graphRuns++;
      await this.#copyOutputs(plan, prepared);
      return this.#takeOutputs(binding, plan, prepared);
    } catch (error) {
      if (!this.#predicts || !OTHER_SHAPE.test(String(error))) throw error;
      this.#predicts = false;
    } finally {
      this.#running = undefined;
      if (bucket === undefined) {
        api.clearBoundInputs(binding);
        api.clearBoundOutputs(binding);
      }
      for (const value of values) api.releaseValue(value);
      for (const memory of memories) memory.release();
      if (this.#ended) api.check(api.runOptionsUnsetTerminate(options));
      this.#ended = false;
    }
    return this.run(inputs, outputs, kept, rows);
  }

  #predict(
    output: Pick<NativeTensor, "dims" | "dimNames">,
    shapeOf: (input: string) => Shape | undefined,
  ): Shape | undefined {
    return this.#predicts ? this.#shapes.predict(output, shapeOf) : undefined;
  }

  /** Finds the bucket of a batch: that of the graph which it may be padded to, or else that of its own shapes. */
  #plan(
    inputs: Tensors,
    names: readonly string[],
    kept: ReadonlySet<string> | undefined,
    rows: number,
  ): RunPlan {
    const outputs = names.map(
      (name) => this.#outputs.get(name) ?? { name, elementType: 0, dims: [], dimNames: [] },
    );
    const shapeOf = (input: string): Shape | undefined =>
      this.#scalars.has(input) ? [] : inputs.get(input)?.shape;
    const buffers = this.#buffers;
    const plan = { outputs, shapeOf, paddedOf: shapeOf };
    if (buffers === undefined) return { ...plan, bucket: undefined };
    const graphs = kept === undefined || kept.size === 0 ? this.#graphs : undefined;
    const spec = graphs?.for(rows, shapeOf);
    if (graphs !== undefined && spec !== undefined) {
      const paddedOf = (input: string): Shape | undefined => {
        const shape = shapeOf(input);
        return shape && graphs.paddedShape(input, shape, spec);
      };
      const tensors = this.#boundTensors(inputs, outputs, paddedOf, kept, true);
      // Addresses that change between runs cannot be part of a graph.
      if (tensors.length === this.session.inputs.length + outputs.length) {
        const bucket = buffers.bucket(tensors, true);
        if (bucket !== undefined) return { ...plan, paddedOf, bucket };
      }
    }
    const tensors = this.#boundTensors(inputs, outputs, shapeOf, kept, false);
    return { ...plan, bucket: tensors.length === 0 ? undefined : buffers.bucket(tensors, false) };
  }

  /** The tensors of a run that have a place on the GPU: those whose sizes are known before it. */
  #boundTensors(
    inputs: Tensors,
    outputs: readonly NativeTensor[],
    shapeOf: (input: string) => Shape | undefined,
    kept: ReadonlySet<string> | undefined,
    isGraph: boolean,
  ): BoundTensor[] {
    const tensors: BoundTensor[] = [];
    for (const { name } of this.session.inputs) {
      const tensor = inputs.get(name);
      const shape = shapeOf(name);
      if (tensor === undefined || tensor.datatype === "BYTES" || shape === undefined) continue;
      // A graph reads its inputs at fixed places, so those on the GPU are copied there, as is memory of others.
      if (!isGraph && this.#hasValue(name, tensor)) continue;
      const { datatype } = tensor;
      const byteSize = elementCount(shape) * elementByteSize(datatype);
      const elementType = toOnnxType(datatype);
      if (byteSize > 0) tensors.push({ name, side: "input", elementType, shape, byteSize });
    }
    for (const { name, elementType, dims, dimNames } of outputs) {
      if (kept?.has(name)) continue;
      const datatype = outputDataType(name, elementType);
      const shape = this.#predict({ dims, dimNames }, shapeOf);
      if (datatype === "BYTES" || shape === undefined) continue;
      const byteSize = elementCount(shape) * elementByteSize(datatype);
      if (byteSize > 0) tensors.push({ name, side: "output", elementType, shape, byteSize });
    }
    return tensors;
  }

  /** Options of runs with this graph. ONNX Runtime keeps the options of a run as long as it runs. */
  #optionsOf(graph: number): number {
    const { api, capturesGraphs } = this.session;
    let options = this.#options.get(graph);
    if (options === undefined) {
      const made = api.read((to) => api.createRunOptions(to));
      this.#options.set(graph, made);
      for (const [key, value] of Object.entries(this.data.native.runConfig ?? {})) {
        api.check(api.addRunConfigEntry(made, key, String(value)));
      }
      if (capturesGraphs) api.check(api.addRunConfigEntry(made, GRAPH_OPTION, String(graph)));
      options = made;
    }
    return options;
  }

  /** Binds an input. Returns the number of bytes whose copy to the GPU was queued. */
  async #bindInput(
    name: string,
    inputs: Tensors,
    { bucket, shapeOf, paddedOf }: RunPlan,
    values: number[],
    memories: HeldCudaMemory[],
    held: unknown[],
  ): Promise<number> {
    const { api } = this.session;
    const tensor = inputs.get(name);
    if (tensor === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
    const shape = shapeOf(name)!;
    const binding = bucket?.binding ?? this.#binding;
    const there =
      tensor.source instanceof DeviceValue ? tensor.source.valueFor(this.session, shape) : undefined;
    const place = bucket?.places.get(placeOf("input", name));
    if (there !== undefined && bucket?.graph === undefined) {
      api.check(api.bindInput(binding, name, there));
      return 0;
    }
    if (place !== undefined && there !== undefined) {
      const from = api.read((to) => api.getTensorMutableData(there, to));
      await this.#copies!.copyIn(name, { place, shape: paddedOf(name)! }, tensor, shape, BigInt(from), true);
      return tensor.byteLength;
    }
    if (tensor.source !== undefined && this.#isOnGpu(tensor.source)) {
      const memory = tensor.source.cuda!.hold();
      if (memory !== undefined) {
        memories.push(memory);
        if (place !== undefined) {
          await this.#copies!.copyIn(
            name,
            { place, shape: paddedOf(name)! },
            tensor,
            shape,
            memory.address,
            true,
          );
          return tensor.byteLength;
        }
        const { info } = this.session.deviceMemory!;
        const elementType = toOnnxType(tensor.datatype);
        const value = valueAt(api, info, Number(memory.address), tensor.byteLength, elementType, shape);
        values.push(value);
        api.check(api.bindInput(binding, name, value));
        return 0;
      }
    }
    this.copiesIn++;
    if (place !== undefined) {
      const padded = paddedOf(name)!;
      const ofBatch = tensor.elements as TypedArray;
      const filled = this.#graphs?.paddedEntries(name, ofBatch, elementCount(padded));
      const elements = filled ?? ofBatch;
      held.push(elements);
      const { byteLength } = elements;
      const isQuick = byteLength < SMALL_BYTES || this.memory.isPinned(elements);
      const from = byteLength === 0 ? 0n : api.koffi.address(elements);
      const given = filled === undefined ? shape : padded;
      await this.#copies!.copyIn(name, { place, shape: padded }, tensor, given, from, isQuick);
      return byteLength;
    }
    const value = tensorValue(api, tensor, shape);
    values.push(value);
    held.push(tensor.elements);
    const bind = api.bindInput;
    api.check(
      tensor.byteLength < SMALL_BYTES
        ? bind(binding, name, value)
        : await callAsync(held, bind, binding, name, value),
    );
    return 0;
  }

  /** Binds an output to the device, to memory of JavaScript if its shape is known, or to memory of ONNX Runtime. */
  #bindOutput(
    { name, elementType, dims, dimNames }: NativeTensor,
    { bucket, shapeOf, paddedOf }: RunPlan,
    kept: ReadonlySet<string> | undefined,
    values: number[],
  ): PreparedOutput {
    const { api, deviceMemory } = this.session;
    const binding = bucket?.binding ?? this.#binding;
    const datatype = outputDataType(name, elementType);
    if (kept?.has(name) && datatype !== "BYTES" && this.#values.hasRoom()) {
      api.check(api.bindOutputToDevice(binding, name, deviceMemory!.info));
      return { isKept: true };
    }
    this.copiesOut++;
    const shape = this.#predict({ dims, dimNames }, shapeOf);
    const count = shape === undefined ? 0 : elementCount(shape);
    const place = bucket?.places.get(placeOf("output", name));
    if (shape === undefined || (count === 0 && place === undefined) || datatype === "BYTES") {
      api.check(api.bindOutputToDevice(binding, name, api.cpuMemory));
      return {};
    }
    const elements = new (typedArrayFor(datatype))(count);
    const tensor = Tensor.fromElements(datatype, shape, elements);
    if (place !== undefined) {
      return { tensor, placed: { place, shape: this.#predict({ dims, dimNames }, paddedOf)! } };
    }
    const value = valueOver(api, elements, elementType, shape);
    values.push(value);
    api.check(api.bindOutput(binding, name, value));
    return { tensor };
  }

  /** Copies the outputs from their places on the GPU: over pinned memory, from which CUDA copies by itself. */
  async #copyOutputs({ outputs }: RunPlan, prepared: readonly PreparedOutput[]): Promise<void> {
    const { koffi } = this.session.api;
    const arrived: (() => void)[] = [];
    let copied = 0;
    for (const [i, { tensor, placed }] of prepared.entries()) {
      if (tensor === undefined || placed === undefined || tensor.byteLength === 0) continue;
      const { name } = outputs[i]!;
      const elements = tensor.elements as TypedArray;
      const { byteLength } = elements;
      const pinned = this.#isOutputPinned ? this.#arrivals.pinned(name, byteLength) : undefined;
      copied += byteLength;
      const into = koffi.address(pinned ?? elements);
      const isQuick = pinned !== undefined || byteLength < SMALL_BYTES;
      await this.#copies!.copyOut(name, placed, tensor, into, isQuick);
      if (pinned === undefined) continue;
      arrived.push(() => new Uint8Array(elements.buffer, elements.byteOffset, byteLength).set(pinned));
    }
    if (copied > 0) await this.#copies!.wait(copied);
    for (const take of arrived) take();
  }

  #takeOutputs(
    binding: number,
    { outputs }: RunPlan,
    prepared: readonly PreparedOutput[],
  ): Map<string, Tensor> {
    const { api } = this.session;
    if (prepared.every(({ placed }) => placed !== undefined)) {
      return new Map(prepared.map(({ tensor }, i) => [outputs[i]!.name, tensor!]));
    }
    const out = new BigUint64Array(2);
    const at = Number(api.koffi.address(out));
    api.check(api.getBoundOutputValues(binding, api.allocator, at, at + 8));
    const list = api.koffi.decode(out[0]!, "uint64", prepared.length) as ArrayLike<number | bigint>;
    const values = Array.from(list, Number);
    api.check(api.allocatorFree(api.allocator, Number(out[0])));
    // Outputs with a place were bound when their bucket was made, before the others.
    const isPlaced = (i: number) => prepared[i]!.placed !== undefined;
    const all = [...prepared.keys()];
    const order = [...all.filter(isPlaced), ...all.filter((i) => !isPlaced(i))];
    return new Map(
      order.map((i, at) => {
        const { tensor: ready, isKept } = prepared[i]!;
        const { name } = outputs[i]!;
        const value = values[at]!;
        if (!isKept) {
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
