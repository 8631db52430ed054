import { batch, sample } from "@tritonjs/core";
import { fromConfigDataType } from "@tritonjs/protocol";
import type { VirtualClock } from "@tritonjs/testing";
import { InferenceSession, type Tensor } from "onnxruntime-node";
import type { ParsedConfig } from "../config-text.js";
import { type Array_, type Elements, tensor } from "./tensors.js";

/** ONNX Runtime's names of the data types that differ from ours in more than case. */
const ORT_TYPES: Readonly<Record<string, string>> = {
  FP16: "float16",
  FP32: "float32",
  FP64: "float64",
  BYTES: "string",
};

/**
 * A recorded model that is an ONNX graph: ONNX Runtime runs it unchanged. The runs take real time, so the clock of
 * the scenario has to wait for them: see {@link settle}.
 */
export class OnnxGraph {
  readonly #session: Promise<InferenceSession>;
  readonly #outputs: readonly string[];
  readonly #types = new Map<string, string>();
  readonly #running = new Set<Promise<unknown>>();
  /** The callback of all instances. */
  readonly inferFunc: unknown;

  constructor(hex: string, config: ParsedConfig) {
    this.#session = InferenceSession.create(Buffer.from(hex, "hex"));
    const { controlInput = [], state = [] } = config.sequenceBatching ?? {};
    const tensors = [
      ...(config.input ?? []),
      ...(config.batchInput ?? []).flatMap(({ targetName, dataType }) =>
        targetName.map((name) => ({ name, dataType })),
      ),
      ...state.map(({ inputName: name, dataType }) => ({ name, dataType })),
      ...controlInput.map(({ name, control: [control] }) => ({
        name,
        dataType: control?.boolFalseTrue.length
          ? "TYPE_BOOL"
          : control?.fp32FalseTrue.length
            ? "TYPE_FP32"
            : "TYPE_INT32",
      })),
    ];
    for (const { name, dataType } of tensors) {
      const type = fromConfigDataType(dataType) ?? "";
      this.#types.set(name, ORT_TYPES[type] ?? type.toLowerCase());
    }
    const outputs = [...(config.output ?? []).map(({ name }) => name), ...state.map((one) => one.outputName)];
    this.#outputs = [...new Set(outputs)];
    const run = (inputs: Readonly<Record<string, Array_>>) => this.#track(this.#run(inputs));
    this.inferFunc = (config.maxBatchSize ?? 0) > 0 ? batch(run as never) : sample(run as never);
  }

  /** Lets running executions and all their effects finish, without moving time. */
  async settle(clock: VirtualClock): Promise<void> {
    await clock.settle();
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#running);
      await clock.settle();
    }
  }

  #track<T>(run: Promise<T>): Promise<T> {
    this.#running.add(run);
    const ended = () => this.#running.delete(run);
    run.then(ended, ended);
    return run;
  }

  async #run(inputs: Readonly<Record<string, Array_>>): Promise<Record<string, Array_>> {
    const feeds = Object.entries(inputs).map(([name, { data, shape }]) => [
      name,
      { type: this.#types.get(name), dims: shape, data: toOrt(data), location: "cpu" },
    ]);
    const results = await (await this.#session).run(Object.fromEntries(feeds), [...this.#outputs]);
    return Object.fromEntries(
      Object.entries(results).map(([name, { data, dims }]) => [name, tensor(fromOrt(data), dims)]),
    );
  }
}

function toOrt(data: Elements): unknown {
  return Array.isArray(data) ? data.map((element) => Buffer.from(element).toString("utf8")) : data;
}

function fromOrt(data: Tensor["data"]): Elements {
  return (Array.isArray(data) ? data.map((text) => Buffer.from(text as string, "utf8")) : data) as Elements;
}
