import { performance } from "node:perf_hooks";
import type { Tensor } from "@tritonjs/protocol";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { OnnxModel } from "../onnx-graph/onnx-model.js";
import { OnnxSession, type OnnxSessionOptions } from "../onnxruntime/onnx-session.js";

/** One run of a model: its inputs by name, with all their dimensions. */
export type Sample = ReadonlyMap<string, Tensor>;

/** How a variant is run, where it is more than its file. */
type RunOptions = Pick<
  OnnxSessionOptions,
  | "intraOpNumThreads"
  | "interOpNumThreads"
  | "executionMode"
  | "graphOptimizationLevel"
  | "enableCpuMemArena"
  | "enableMemPattern"
  | "sessionConfig"
>;

const CPU = { device: { kind: "KIND_CPU", id: 0 } } as const;

/** A model that is open in this process, for checks. It blocks the thread while it runs. */
export class ModelRunner {
  private constructor(
    private readonly session: OnnxSession,
    private readonly label: string,
  ) {}

  /**
   * Opens a model: its file, or the model as it is now. A model with external data must be in a file.
   *
   * @throws TritonError with ONNX Runtime's words if it refuses the model; UNAVAILABLE without onnxruntime-node
   */
  static async open(model: string | OnnxModel, options: RunOptions = {}): Promise<ModelRunner> {
    const source = model instanceof OnnxModel ? model.toBytes() : model;
    const label = model instanceof OnnxModel ? model.label : `'${model}'`;
    return new ModelRunner(await OnnxSession.open(source, CPU, options), label);
  }

  get inputs() {
    return this.session.inputs;
  }

  get outputs() {
    return this.session.outputs;
  }

  /** @throws TritonError INVALID_ARG with the model and ONNX Runtime's words, for inputs that it refuses */
  async run(sample: Sample, outputs?: readonly string[]): Promise<Map<string, Tensor>> {
    try {
      return await this.session.runTensors(sample, outputs);
    } catch (error) {
      const shapes = [...sample].map(([name, { shape }]) => `${name} [${shape}]`).join(", ");
      const text = `cannot run the ONNX model ${this.label} on ${shapes}: ${TritonError.from(error).message}`;
      throw errorFor("INVALID_INPUT", text, { cause: error });
    }
  }

  /**
   * Time of the processor for one run, in milliseconds: the least of several rounds, so that other programs on the
   * machine count little.
   *
   * @param budgetMs about how long to measure
   */
  async cpuMs(sample: Sample, budgetMs = 300): Promise<number> {
    await this.run(sample);
    const one = await cpuTime(() => this.run(sample), 1);
    const count = Math.max(1, Math.min(200, Math.floor(budgetMs / ROUNDS / Math.max(one, 0.02))));
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round++)
      least = Math.min(least, await cpuTime(() => this.run(sample), count));
    return least;
  }

  close(): Promise<void> {
    return this.session.release();
  }
}

const ROUNDS = 5;

async function cpuTime(run: () => Promise<unknown>, count: number): Promise<number> {
  const begin = process.cpuUsage();
  const at = performance.now();
  for (let i = 0; i < count; i++) await run();
  const { user, system } = process.cpuUsage(begin);
  const cpu = (user + system) / 1000;
  // The clock of the processor may be too coarse for short runs.
  return (cpu > 0 ? cpu : performance.now() - at) / count;
}
