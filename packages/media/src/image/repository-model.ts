import type { BackendFactory } from "@tritonjs/core/backend";
import { definedMembers, fromConfigDataType, type ModelConfig, type ModelOutput } from "@tritonjs/protocol";
import { ParameterReader } from "../parameters/model-parameters.js";
import { imageBackend } from "./image.js";
import { ORIGINAL_SIZE } from "./image-executor.js";
import type { ImageOptions } from "./image-options.js";
import { planImage } from "./image-plan.js";

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
