import type {
  Backend,
  BackendFactory,
  ExecutableRequest,
  Execution,
  ExecutionResult,
  Executor,
} from "@tritonjs/core/backend";
import {
  ConcurrencyGate,
  definedMembers,
  fromConfigDataType,
  type ModelConfig,
  type ModelOutput,
  Tensor,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import { decodeImage, pixelArray, pixelWriter, type WritePixels } from "./decode-image.js";
import { type ImageOptions, type ImagePlan, planImage } from "./image-options.js";
import { importSharp, type SharpModule } from "./import-sharp.js";
import { completeTensors, filesOf, hasRows, ParameterReader } from "./media-parameters.js";

/**
 * A backend that prepares images for a model: it decodes JPEG, PNG, WebP, GIF, TIFF and AVIF, turns the image upright
 * (EXIF), resizes, crops, normalizes, and lays out a tensor. `bind` needs no specifications: the input is `image`
 * (BYTES `[rows, 1]`, the bytes of a file), the output is `pixels` (`[rows, 3, height, width]`).
 *
 * The images of a batch are decoded at the same time by `sharp`, on libuv's threads. A bad file fails its own request
 * with INVALID_ARG.
 *
 * @throws TritonError INVALID_ARG for invalid options. Loading fails with UNAVAILABLE unless `sharp` is installed.
 * @example
 * ```ts
 * triton.bind({
 *   modelName: "pixels",
 *   inferFunc: image({
 *     width: 224,
 *     height: 224,
 *     shorterSide: 256,
 *     mean: [0.485, 0.456, 0.406],
 *     std: [0.229, 0.224, 0.225],
 *   }),
 * });
 * ```
 */
export function image(options: ImageOptions): Backend {
  return imageBackend(planImage(options));
}

/** The backend of a plan. */
function imageBackend(plan: ImagePlan): Backend {
  const { inputs, outputs } = tensorsOf(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "image",
    platform: "",
    isolations: ["inline"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    completeConfig: (config) => completeTensors(config, inputs, outputs),
    createExecutor: ({ info }) => new ImageExecutor(plan, hasRows(info.modelConfig, plan.inputName)),
  };
}

/** The tensors of a plan, without the axis of the rows. */
function tensorsOf(plan: ImagePlan) {
  const { width, height, channels, layout, dtype, inputName, outputName } = plan;
  const shape = layout === "NCHW" ? [channels, height, width] : [height, width, channels];
  const inputs: readonly TensorSpec[] = [{ name: inputName, dtype: "BYTES", shape: [1] }];
  const outputs: TensorSpec[] = [{ name: outputName, dtype, shape }];
  if (plan.originalSize) outputs.push({ name: ORIGINAL_SIZE, dtype: "INT32", shape: [2] });
  return { inputs, outputs };
}

/**
 * The backend `image` for models of a repository. Its options are parameters with the same names in snake case. Names
 * of tensors, the data type and the size can also come from a written input and output.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values
 */
export const imageRepositoryBackend: BackendFactory = ({ config }) => {
  const read = new ParameterReader(config);
  const output = config.output.find(({ name }) => name !== ORIGINAL_SIZE);
  const layout = (read.text("layout") ?? "NCHW") as NonNullable<ImageOptions["layout"]>;
  const size = sizeOf(config, output, layout);
  const background = read.numbers("background") as ImageOptions["background"];
  const options: ImageOptions = {
    ...definedMembers({
      width: read.number("width") ?? size?.width ?? 0,
      height: read.number("height") ?? size?.height ?? 0,
      fit: read.text("fit") as ImageOptions["fit"],
      shorterSide: read.number("shorterSide"),
      position: read.text("position") as ImageOptions["position"],
      kernel: read.text("kernel") as ImageOptions["kernel"],
      background,
      colour: read.text("colour") as ImageOptions["colour"],
      dtype: (read.text("dtype") ?? dtypeOf(output)) as ImageOptions["dtype"],
      scale: read.number("scale"),
      mean: oneOrMany(read.numbers("mean")),
      std: oneOrMany(read.numbers("std")),
      originalSize:
        read.flag("originalSize") ?? (config.output.some(({ name }) => name === ORIGINAL_SIZE) || undefined),
      animated: read.text("animated") as ImageOptions["animated"],
      formats: read.words("formats") as ImageOptions["formats"],
      failOn: read.text("failOn") as ImageOptions["failOn"],
      maxPixels: read.number("maxPixels"),
      maxBytes: read.number("maxBytes"),
      concurrency: read.number("concurrency"),
      inputName: config.input[0]?.name,
      outputName: output?.name,
      layout,
    }),
  } as ImageOptions;
  read.assertNoOthers();
  return imageBackend(planImage(options));
};

/** The size in the dims of a written output. */
function sizeOf(
  { maxBatchSize }: ModelConfig,
  output: ModelOutput | undefined,
  layout: string,
): { readonly width: number; readonly height: number } | undefined {
  const dims = output?.dims ?? [];
  const own = maxBatchSize === 0 && dims.length === 4 ? dims.slice(1) : dims;
  const [height, width] = layout === "NHWC" ? [own[0], own[1]] : [own[1], own[2]];
  return own.length === 3 && width! > 0 && height! > 0 ? { width: width!, height: height! } : undefined;
}

function dtypeOf(output: ModelOutput | undefined): string | undefined {
  return output === undefined || output.dataType === "TYPE_INVALID"
    ? undefined
    : fromConfigDataType(output.dataType);
}

function oneOrMany(values: number[] | undefined): number | number[] | undefined {
  return values?.length === 1 ? values[0] : values;
}

/** Name of the output with the size before resizing. */
const ORIGINAL_SIZE = "original_size";

/**
 * Prepares the images of a batch at the same time, as many as the plan allows. `sharp` decodes and resizes on libuv's
 * threads. This thread only brings pixels into the tensor, with a turn of the event loop after each slice.
 */
class ImageExecutor implements Executor {
  readonly isolation = "inline";
  /** Decoding cannot be interrupted, and reads the memory of its request until it ends. */
  readonly mustFinish = true;
  readonly takesAnyBatchSize = true;
  readonly details = {};
  /** Number of batches at a time, so that the last image of a batch does not leave threads idle. */
  readonly capacity: number;
  readonly #gate: ConcurrencyGate;
  readonly #write: WritePixels;
  #sharp: SharpModule | undefined;

  /** @param hasRows true if tensors have an axis of rows */
  constructor(
    private readonly plan: ImagePlan,
    private readonly hasRows: boolean,
  ) {
    this.capacity = plan.concurrency;
    // Unbounded, because only images of running batches wait here. The model's own queue is bounded.
    this.#gate = new ConcurrencyGate(plan.concurrency, Number.POSITIVE_INFINITY);
    this.#write = pixelWriter(plan);
  }

  async start(): Promise<void> {
    this.#sharp = await importSharp();
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    execution.inputsReady();
    const results = await Promise.all(
      execution.requests.map((request, index) =>
        this.#prepare(request, () => execution.isOpen(index)).catch((error) => TritonError.from(error)),
      ),
    );
    execution.outputsReady();
    return results;
  }

  async stop(): Promise<void> {}

  /** Waits for all images of a request, even after one has failed, because threads still read the others. */
  async #prepare({ inputs }: ExecutableRequest, isOpen: () => boolean): Promise<ExecutionResult> {
    const { inputName, outputName, width, height, channels, layout, dtype } = this.plan;
    const files = filesOf(inputs.get(inputName), inputName, this.hasRows);
    const rows = files.length;
    const values = width * height * channels;
    const pixels = pixelArray(dtype, rows * values);
    const sizes = new Int32Array(2 * rows);
    const settled = await Promise.allSettled(
      files.map((file, row) =>
        this.#gate.run(async () => {
          if (!isOpen()) return;
          const image = await decodeImage(this.#sharp!, this.plan, file, rows === 1 ? undefined : row);
          if (!isOpen()) return;
          if (image.originalSize !== undefined) sizes.set(image.originalSize, 2 * row);
          await this.#write(image.pixels, image.channels, pixels, row * values);
        }, undefined),
      ),
    );
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const batch = this.hasRows ? [rows] : [];
    const one = layout === "NCHW" ? [channels, height, width] : [height, width, channels];
    const outputs = new Map([[outputName, Tensor.fromElements(dtype, [...batch, ...one], pixels)]]);
    if (this.plan.originalSize)
      outputs.set(ORIGINAL_SIZE, Tensor.fromElements("INT32", [...batch, 2], sizes));
    return outputs;
  }
}
