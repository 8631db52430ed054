import { types } from "node:util";
import {
  arrayDatatype,
  type BFloat16Bits,
  cancelled,
  contiguousElements,
  type DataType,
  type Elements,
  errorFor,
  type Float16Bits,
  isHalfArray,
  isNdArray,
  NO_PARAMETERS,
  ndArrayOf,
  onAbort,
  TritonError,
  type TypedArray,
} from "@tritonjs/protocol";
import type { NdArray } from "ndarray";
import type { CallInputs, CallOutputs, ContextCallOptions, ModelCaller } from "../callback/infer-func.js";
import { responseParameters, withParameters } from "../request/inference-response.js";
import { type FromWorker, packError, type ToWorker, unpackError } from "./messages.js";

type Call = Extract<FromWorker, { type: "call" }>;

interface OpenCall {
  readonly controller: AbortController;
  readonly answers: AsyncIterator<CallOutputs, void>;
}

/** The main thread's side of calls that a worker makes to other models. Each answer is sent on demand. */
export class CallsOfWorker {
  readonly #open = new Map<number, OpenCall>();

  /** @param modelsOf returns the caller of models for a batch; undefined if the batch is over */
  constructor(
    private readonly post: (message: ToWorker, transfer: ArrayBuffer[]) => void,
    private readonly modelsOf: (batch: number) => ModelCaller | undefined,
  ) {}

  take(message: Extract<FromWorker, { type: "call" | "next" | "end" }>): void {
    if (message.type === "call") this.#start(message);
    else if (message.type === "next") this.#next(message.call);
    else this.#end(message.call);
  }

  #start(message: Call): void {
    const models = this.modelsOf(message.batch);
    if (models === undefined) {
      const text = `the call of model '${message.modelName}' was cancelled: the batch that made it has ended`;
      const error = { code: "CANCELLED", message: text, reason: "CALLER_ENDED" } as const;
      this.post({ type: "answer", call: message.call, error }, []);
      return;
    }
    const controller = new AbortController();
    const options = { ...message.options, signal: controller.signal, deviceOutputs: undefined };
    const { modelName, inputs } = message;
    const answers = message.stream
      ? models.stream(modelName, inputs, options)
      : single(models, message, options);
    this.#open.set(message.call, { controller, answers });
    if (!message.stream) this.#next(message.call);
  }

  #next(call: number): void {
    const open = this.#open.get(call);
    if (open === undefined) return;
    open.answers.next().then(
      ({ done, value }) => {
        if (done) this.#open.delete(call);
        const transfer: ArrayBuffer[] = [];
        const outputs =
          done || value === undefined
            ? {}
            : { outputs: packValues(value, transfer, bitsOf), parameters: responseParameters(value) };
        this.post({ type: "answer", call, ...outputs }, transfer);
      },
      (thrown) => {
        this.#open.delete(call);
        this.post({ type: "answer", call, error: packError(thrown) }, []);
      },
    );
  }

  #end(call: number): void {
    const open = this.#open.get(call);
    this.#open.delete(call);
    open?.controller.abort();
    void Promise.resolve(open?.answers.return?.()).catch(() => {});
  }

  endAll(): void {
    for (const call of [...this.#open.keys()]) this.#end(call);
  }
}

async function* single(models: ModelCaller, { modelName, inputs }: Call, options: ContextCallOptions) {
  yield await models.infer(modelName, inputs, options);
}

type Answer = Extract<ToWorker, { type: "answer" }>;

/** The worker's side of calls to other models, which the main thread makes. */
export class CallsToModels {
  #next = 0;
  readonly #waiting = new Map<number, (answer: Answer) => void>();

  constructor(private readonly post: (message: FromWorker, transfer: ArrayBuffer[]) => void) {}

  /** @param batch batch on whose behalf the models are called */
  of(batch: number): ModelCaller {
    return {
      infer: async <R>(modelName: string, inputs: CallInputs, options: ContextCallOptions = {}) => {
        const call = this.#start(batch, modelName, inputs, options, false);
        try {
          return (await this.#answer(call, modelName, options.signal)) as R;
        } finally {
          this.post({ type: "end", call }, []);
        }
      },
      stream: <R>(modelName: string, inputs: CallInputs, options: ContextCallOptions = {}) =>
        this.#stream(batch, modelName, inputs, options) as AsyncGenerator<unknown> as AsyncGenerator<
          R,
          void,
          void
        >,
    };
  }

  answer(message: Answer): void {
    const waiting = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    waiting?.(message);
  }

  async *#stream(
    batch: number,
    modelName: string,
    inputs: CallInputs,
    options: ContextCallOptions,
  ): AsyncGenerator<CallOutputs, void, void> {
    const call = this.#start(batch, modelName, inputs, options, true);
    try {
      for (;;) {
        const next = this.#answer(call, modelName, options.signal);
        this.post({ type: "next", call }, []);
        const outputs = await next;
        if (outputs === undefined) return;
        yield outputs;
      }
    } finally {
      this.post({ type: "end", call }, []);
    }
  }

  #start(
    batch: number,
    modelName: string,
    inputs: CallInputs,
    options: ContextCallOptions,
    stream: boolean,
  ): number {
    const { signal, ...rest } = options;
    if (signal?.aborted) throw cancelled(signal.reason);
    const call = this.#next++;
    const transfer: ArrayBuffer[] = [];
    const values = packValues(inputs, transfer, numbersOf);
    try {
      this.post({ type: "call", call, batch, modelName, inputs: values, options: rest, stream }, transfer);
    } catch (error) {
      const why = TritonError.from(error).message;
      throw errorFor("INVALID_INPUT", `cannot send the inputs of a call of model '${modelName}': ${why}`);
    }
    return call;
  }

  #answer(
    call: number,
    modelName: string,
    signal: AbortSignal | undefined,
  ): Promise<CallOutputs | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, ({ outputs, parameters = NO_PARAMETERS, error }) => {
        forget();
        if (error !== undefined) reject(unpackError(error));
        else resolve(outputs && withParameters(toArrays(outputs, modelName), parameters));
      });
      const forget = onAbort(signal, () => {
        this.#waiting.delete(call);
        reject(cancelled(signal?.reason));
      });
    });
  }
}

function toArrays(outputs: Readonly<Record<string, unknown>>, modelName: string): CallOutputs {
  const arrays = Object.entries(outputs as Record<string, PackedArray>).map(
    ([name, { data, shape, datatype }]) => [
      name,
      ndArrayOf(data, shape, datatype, "output", name, modelName),
    ],
  );
  return Object.fromEntries(arrays);
}

/*
 * Values of a program in messages between threads. An ndarray is sent as its elements and its shape, and recognised on
 * the other side. Nested arrays are cloned. Arrays of FP16 and BF16 lose their class in a message: inputs are sent as
 * numbers, outputs as bits with their data type.
 */

/** An ndarray in a message. */
interface PackedArray {
  readonly data: Elements;
  readonly shape: readonly number[];
  readonly datatype: DataType | undefined;
}

type HalfArray = Float16Bits | BFloat16Bits;

const numbersOf = (elements: HalfArray): TypedArray => elements.toFloat32();

const bitsOf = ({ buffer, byteOffset, length }: HalfArray): TypedArray =>
  new Uint16Array(buffer, byteOffset, length).slice();

/** Packs values by name for a message; `transfer` receives the buffers that may be transferred. */
function packValues(
  values: Readonly<Record<string, unknown>>,
  transfer: ArrayBuffer[],
  ofHalves: (elements: HalfArray) => TypedArray,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, packValue(value, transfer, ofHalves)]),
  );
}

function packValue(
  value: unknown,
  transfer: ArrayBuffer[],
  ofHalves: (elements: HalfArray) => TypedArray,
): unknown {
  if (isNdArray(value)) {
    const data = packElements(contiguousElements(value), transfer, ofHalves);
    return {
      data,
      shape: [...value.shape],
      stride: rowMajor(value),
      offset: 0,
      datatype: arrayDatatype(value),
    };
  }
  if (Array.isArray(value) && types.isTypedArray(value[0]))
    return value.map((row: unknown) => packValue(row, transfer, ofHalves));
  return types.isTypedArray(value) ? packElements(value as TypedArray, transfer, ofHalves) : value;
}

/** Copies elements, so that no other data of the same buffer is sent, and the sender keeps its own. */
function packElements(
  elements: Elements,
  transfer: ArrayBuffer[],
  ofHalves: (elements: HalfArray) => TypedArray,
): Elements {
  if (Array.isArray(elements)) return elements.map((element) => new Uint8Array(element));
  const like = Buffer.isBuffer(elements) ? Uint8Array : elements.constructor;
  const copy = isHalfArray(elements)
    ? ofHalves(elements)
    : new (like as Uint8ArrayConstructor)(elements as Uint8Array);
  transfer.push(copy.buffer as ArrayBuffer);
  return copy;
}

function rowMajor({ shape }: NdArray<Elements>): number[] {
  const stride = shape.map(() => 1);
  for (let axis = shape.length - 2; axis >= 0; axis--) stride[axis] = stride[axis + 1]! * shape[axis + 1]!;
  return stride;
}
