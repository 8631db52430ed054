import {
  type CudaMemory,
  type DataType,
  elementByteSize,
  elementCount,
  errorFor,
  type HeldCudaMemory,
  type Shape,
  sameShape,
  Tensor,
  type TensorSource,
  type TypedArray,
  typedArrayFor,
} from "@tritonjs/protocol";
import { callAsync, type NativeSession } from "./native-session.js";
import { valueOver } from "./native-values.js";

/** Memory on devices that values between models may take in one session. Further outputs go to the CPU. */
const MOST_BYTES = 256 * 1024 * 1024;

/**
 * Values of one session that stay on its device, because other models read them there. Their memory is freed when the
 * tensors over them are collected, and when the session closes.
 */
export class DeviceValues {
  readonly #open = new Map<number, number>();
  readonly #collected = new FinalizationRegistry<number>((value) => {
    // Providers that take one call at a time are not called in between.
    if (this.#open.has(value)) void this.session.call(async () => this.#release(value));
  });
  #bytes = 0;
  #copier: HostCopier | undefined;

  private constructor(readonly session: NativeSession) {
    session.onClose = () => this.close();
  }

  /** The values of a session. */
  static of(session: NativeSession): DeviceValues {
    let values = ofSessions.get(session);
    if (values === undefined) {
      values = new DeviceValues(session);
      ofSessions.set(session, values);
    }
    return values;
  }

  /** Whether a value of this size may stay on the device. */
  hasRoom(): boolean {
    return this.#bytes < MOST_BYTES;
  }

  /** A tensor over a value, which this object releases from now on. */
  tensorOver(value: number, datatype: Exclude<DataType, "BYTES">, elementType: number, shape: Shape): Tensor {
    const byteSize = elementCount(shape) * elementByteSize(datatype);
    const source = new DeviceValue(this, value, datatype, elementType, shape);
    this.#open.set(value, byteSize);
    this.#bytes += byteSize;
    this.#collected.register(source, value);
    return Tensor.fromSource(datatype, shape, source);
  }

  /** True if a value was not released. */
  has(value: number): boolean {
    return this.#open.has(value);
  }

  get copier(): HostCopier {
    this.#copier ??= new HostCopier(this.session);
    return this.#copier;
  }

  /** Releases all values. No call may be running. */
  close(): void {
    for (const value of [...this.#open.keys()]) this.#release(value);
  }

  #release(value: number): void {
    const byteSize = this.#open.get(value);
    if (byteSize === undefined) return;
    this.#open.delete(value);
    this.#bytes -= byteSize;
    this.session.api.releaseValue(value);
  }
}

const ofSessions = new WeakMap<NativeSession, DeviceValues>();

/** A value of ONNX Runtime on a device. */
export class DeviceValue implements TensorSource {
  readonly cuda: CudaMemory | undefined;
  #elements: TypedArray | undefined;
  #loading: Promise<void> | undefined;

  constructor(
    private readonly values: DeviceValues,
    private readonly value: number,
    private readonly datatype: Exclude<DataType, "BYTES">,
    private readonly elementType: number,
    private readonly shape: Shape,
  ) {
    const deviceId = values.session.deviceMemory?.cudaDevice;
    this.cuda = deviceId === undefined ? undefined : { deviceId, hold: () => this.#hold() };
  }

  /** Values of an open session are released with their tensors, so only the session is checked. */
  #hold(): HeldCudaMemory | undefined {
    const { api } = this.values.session;
    if (!this.values.has(this.value)) return undefined;
    const address = BigInt(api.read((to) => api.getTensorMutableData(this.value, to)));
    return { address, release() {} };
  }

  /**
   * Address of the value for an input of this shape, in a session of the same library on the same device. Undefined for
   * another shape, because a value cannot be reshaped, and for any other session.
   */
  valueFor({ api, deviceMemory }: NativeSession, shape: Shape): number | undefined {
    const { session } = this.values;
    if (!sameShape(shape, this.shape)) return undefined;
    const fits =
      api === session.api && deviceMemory !== undefined && deviceMemory.key === session.deviceMemory?.key;
    return fits && this.values.has(this.value) ? this.value : undefined;
  }

  read(): TypedArray {
    if (this.#elements !== undefined) return this.#elements;
    const { session } = this.values;
    this.#checkOpen();
    if (session.isOccupied()) {
      const text = `cannot read a tensor of execution provider '${session.providers[0]}' while it runs a batch: call load() first`;
      throw errorFor("MODEL_BUSY", text);
    }
    const elements = this.#array();
    this.values.copier.copy(this.value, this.elementType, this.shape, elements);
    this.#elements = elements;
    return elements;
  }

  async load(): Promise<void> {
    if (this.#elements !== undefined) return;
    this.#loading ??= this.#load();
    await this.#loading;
  }

  async #load(): Promise<void> {
    const elements = this.#array();
    await this.values.session.call(async () => {
      this.#checkOpen();
      await this.values.copier.copyAsync(this.value, this.elementType, this.shape, elements);
    });
    this.#elements = elements;
  }

  #array(): TypedArray {
    return new (typedArrayFor(this.datatype))(elementCount(this.shape));
  }

  #checkOpen(): void {
    if (this.values.has(this.value)) return;
    throw errorFor("MODEL_STOPPED", "cannot read a tensor on a device: its model was unloaded");
  }
}

/**
 * Copies values from a device to the CPU with a model of one operator, `Identity`, on the same provider: ONNX Runtime
 * then makes the copy. That works with every provider and every version.
 */
class HostCopier {
  readonly #sessions = new Map<number, number>();

  constructor(private readonly session: NativeSession) {}

  copy(value: number, elementType: number, shape: Shape, into: TypedArray): void {
    const { api } = this.session;
    this.#withBinding(value, elementType, shape, into, (session, binding) =>
      api.check(api.runWithBinding(session, 0, binding)),
    );
  }

  async copyAsync(value: number, elementType: number, shape: Shape, into: TypedArray): Promise<void> {
    const { api } = this.session;
    await this.#withBinding(value, elementType, shape, into, async (session, binding) =>
      api.check(await callAsync([into], api.runWithBinding, session, 0, binding)),
    );
  }

  #withBinding<T>(
    value: number,
    elementType: number,
    shape: Shape,
    into: TypedArray,
    run: (session: number, binding: number) => T,
  ): T {
    const { api } = this.session;
    let session = this.#sessions.get(elementType);
    if (session === undefined) {
      session = this.session.openHelper(identityModel(elementType));
      this.#sessions.set(elementType, session);
    }
    const opened = session;
    const binding = api.read((to) => api.createIoBinding(opened, to));
    const output = valueOver(api, into, elementType, shape);
    const end = () => {
      api.releaseIoBinding(binding);
      api.releaseValue(output);
    };
    let result: T;
    try {
      api.check(api.bindInput(binding, "x", value));
      api.check(api.bindOutput(binding, "y", output));
      result = run(opened, binding);
    } catch (error) {
      end();
      throw error;
    }
    if (result instanceof Promise) return result.finally(end) as T;
    end();
    return result;
  }
}

/** An ONNX model `y = Identity(x)` for one element type, of any shape. */
export function identityModel(elementType: number): Uint8Array {
  const field = (number: number, content: Uint8Array | number): number[] =>
    typeof content === "number" ? [number << 3, content] : [(number << 3) | 2, content.length, ...content];
  const bytes = (...parts: number[][]) => Uint8Array.from(parts.flat());
  const text = (value: string) => new TextEncoder().encode(value);
  const tensor = (name: string) =>
    bytes(field(1, text(name)), field(2, bytes(field(1, bytes(field(1, elementType))))));
  const node = bytes(field(1, text("x")), field(2, text("y")), field(4, text("Identity")));
  const graph = bytes(field(1, node), field(2, text("g")), field(11, tensor("x")), field(12, tensor("y")));
  const opset = bytes(field(1, text("")), field(2, 13));
  return bytes(field(1, 7), field(7, graph), field(8, opset));
}
