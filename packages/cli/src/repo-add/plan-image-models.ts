import { join } from "node:path";
import { addScores, OnnxModel } from "@tritonjs/backends/optimize";
import { inspectModelFile } from "@tritonjs/repository/config";
import {
  type HuggingFaceDirectory,
  type HuggingFaceJson,
  numberOf,
  objectOf,
} from "./hugging-face-directory.js";
import {
  badSource,
  cannotServe,
  type ImportPlan,
  LABELS,
  type PlannedModel,
  type PlanOptions,
  type TensorText,
  tensorTexts,
} from "./import-plan.js";
import { classes } from "./plan-text-models.js";

/** A model that reads an image: an ensemble of the backend `image` and the graph. */
export async function planImageReader(
  directory: HuggingFaceDirectory,
  graph: string,
  { name, maxBatchSize }: PlanOptions,
): Promise<ImportPlan> {
  const path = join(directory.path, graph);
  const { config } = (await inspectModelFile(path)) ?? {};
  if (config === undefined) throw badSource(directory.path, `expected an ONNX graph at '${path}'`);
  if (config.maxBatchSize === 0)
    throw cannotServe(
      directory.path,
      `expected a graph with an open first dimension, got a fixed one in '${path}'`,
    );
  const preprocessor = await directory.read("preprocessor_config.json");
  if (preprocessor === undefined)
    throw badSource(
      directory.path,
      "expected preprocessor_config.json, which says how images become pixels, got none",
    );
  const [pixels, ...others] = tensorTexts(config.input);
  if (others.length > 0) {
    throw cannotServe(
      directory.path,
      `${directory.label} has the input '${others[0]!.name}' beside '${pixels!.name}': expected one input, of pixels`,
    );
  }
  const size = sizeOf(directory, preprocessor);
  const [, height, width] = pixels!.dims;
  for (const [axis, given, wanted] of [
    ["height", height, size.height] as const,
    ["width", width, size.width] as const,
  ]) {
    if (given === undefined || given < 0 || given === wanted) continue;
    const text = `preprocessor_config.json gives images the ${axis} ${wanted}: expected ${given}, that of the graph`;
    throw badSource(directory.path, text);
  }
  const steps = { pixels: `${name}_pixels`, model: `${name}_model` };
  const reader: PlannedModel = {
    name: steps.pixels,
    config: {
      backend: "image",
      maxBatchSize,
      input: [{ name: "image", type: "TYPE_STRING", dims: [1] }],
      output: [{ ...pixels!, dims: [3, size.height, size.width] }],
      parameters: { ...size.parameters, ...colours(preprocessor) },
    },
    versionFiles: [],
  };
  const model = await OnnxModel.read(path);
  const head = headOf(directory, tensorTexts(config.output));
  const graphModel: PlannedModel = {
    name: steps.model,
    config: {
      backend: "onnxruntime",
      maxBatchSize,
      input: [pixels!],
      output: head.outputs.map((one) => ({ ...one, labels: head.labels !== undefined })),
    },
    versionFiles:
      head.logits === undefined
        ? await directory.graphFiles(graph, "model.onnx")
        : [{ path: "model.onnx", write: (to) => writeScores(model, head.logits!, to) }],
    ...(head.labels !== undefined && { files: [{ path: LABELS, content: `${head.labels.join("\n")}\n` }] }),
  };
  const ensemble: PlannedModel = {
    name,
    config: {
      platform: "ensemble",
      maxBatchSize,
      input: [{ name: "image", type: "TYPE_STRING", dims: [1] }],
      output: head.outputs,
      steps: [
        { model: steps.pixels, inputs: { image: "image" }, outputs: { [pixels!.name]: "pixels" } },
        {
          model: steps.model,
          inputs: { [pixels!.name]: "pixels" },
          outputs: Object.fromEntries(head.outputs.map((one) => [one.name, one.name])),
        },
      ],
    },
    versionFiles: [],
  };
  return {
    kind: `${head.kind}, ${directory.label}`,
    models: [reader, graphModel, ensemble],
    notes: head.notes,
  };
}

function writeScores(model: OnnxModel, logits: string, path: string): Promise<number> {
  addScores(model, logits, "softmax", "scores");
  return model.write(path);
}

interface ImageHead {
  readonly kind: string;
  readonly outputs: readonly TensorText[];
  /** Output that becomes scores; absent for a graph that stays as it is. */
  readonly logits?: string;
  readonly labels?: readonly string[];
  readonly notes: readonly string[];
}

function headOf({ architecture, config }: HuggingFaceDirectory, outputs: readonly TensorText[]): ImageHead {
  const logits = outputs.find((one) => one.name === "logits");
  if (!architecture.endsWith("ForImageClassification") || logits === undefined)
    return { kind: "outputs of an image", outputs, notes: [] };
  const { output, labels, notes } = classes(config, logits.dims);
  const cleaned = labels?.map((label) => label.replaceAll(/\s+/g, " ").trim());
  return {
    kind: "image classification",
    outputs: [output],
    logits: logits.name,
    ...(cleaned !== undefined && { labels: cleaned }),
    notes,
  };
}

/** Filters of Pillow by their numbers. */
const FILTERS: readonly (string | undefined)[] = ["nearest", "lanczos3", "linear", "cubic"];

/** Size of the pixels, and how images get it. */
function sizeOf(
  directory: HuggingFaceDirectory,
  preprocessor: HuggingFaceJson,
): {
  readonly width: number;
  readonly height: number;
  readonly parameters: Readonly<Record<string, string>>;
} {
  const refuse = (text: string) =>
    cannotServe(directory.path, `preprocessor_config.json: ${text}, which the backend image has no step for`);
  for (const member of [
    "do_pad",
    "do_thumbnail",
    "do_align_long_axis",
    "do_split_image",
    "do_image_splitting",
  ])
    if (preprocessor[member] === true) throw refuse(`${member} is true`);
  const filter = preprocessor.resample === undefined ? "linear" : FILTERS[Number(preprocessor.resample)];
  if (filter === undefined) throw refuse(`resample is ${String(preprocessor.resample)}`);
  const kernel = { kernel: filter };
  const resized = preprocessor.do_resize === false ? undefined : sizeIn(preprocessor.size);
  const isCropped =
    preprocessor.do_center_crop === true || (preprocessor.crop_pct ?? undefined) !== undefined;
  const shortest = resized?.shortest;
  const share = numberOf(preprocessor.crop_pct);
  if (share !== undefined && shortest !== undefined) {
    // ConvNeXT: the share of the side that the crop keeps, unless images are large.
    if (shortest >= 384) return { width: shortest, height: shortest, parameters: { fit: "fill", ...kernel } };
    const side = Math.floor(shortest / share);
    return { width: shortest, height: shortest, parameters: { shorter_side: String(side), ...kernel } };
  }
  if (!isCropped) {
    if (resized?.width === undefined || resized.height === undefined)
      throw refuse(`images have no fixed size: size is ${JSON.stringify(preprocessor.size)}`);
    return { width: resized.width, height: resized.height, parameters: { fit: "fill", ...kernel } };
  }
  const crop = sizeIn(preprocessor.crop_size ?? preprocessor.size);
  const [width, height] = [crop?.width ?? crop?.shortest, crop?.height ?? crop?.shortest];
  if (width === undefined || height === undefined)
    throw refuse(`crop_size is ${JSON.stringify(preprocessor.crop_size)}`);
  if (resized === undefined) throw refuse("images are cropped and not resized");
  if (shortest !== undefined && shortest >= Math.max(width, height))
    return { width, height, parameters: { shorter_side: String(shortest), ...kernel } };
  if (resized.width === width && resized.height === height)
    return { width, height, parameters: { fit: "fill", ...kernel } };
  const what =
    shortest === undefined ? `stretched to ${resized.width}x${resized.height}` : `resized to ${shortest}`;
  throw refuse(`images are ${what} and cropped to ${width}x${height}`);
}

function sizeIn(
  size: unknown,
): { readonly width?: number; readonly height?: number; readonly shortest?: number } | undefined {
  const number = numberOf(size);
  if (number !== undefined) return { width: number, height: number, shortest: number };
  const { width, height, shortest_edge: shortest } = objectOf(size);
  const found = { width: numberOf(width), height: numberOf(height), shortest: numberOf(shortest) };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** The arithmetic of the colours as parameters of the backend `image`. */
function colours(preprocessor: HuggingFaceJson): Record<string, string> {
  const rescales = preprocessor.do_rescale !== false;
  const scale = rescales ? (numberOf(preprocessor.rescale_factor) ?? 1 / 255) : 1;
  const parameters: Record<string, string> = { scale: String(scale) };
  const list = (value: unknown) =>
    Array.isArray(value) && value.every((one) => numberOf(one) !== undefined) ? value : [];
  let mean = preprocessor.do_normalize === false ? [] : (list(preprocessor.image_mean) as number[]);
  const std = preprocessor.do_normalize === false ? [] : (list(preprocessor.image_std) as number[]);
  // EfficientNet: values from -1 to 1 before they are normalized.
  if (rescales && preprocessor.rescale_offset === true)
    mean = (mean.length === 0 ? [0, 0, 0] : mean).map((value) => value + 1);
  if (mean.length > 0) parameters.mean = mean.join(",");
  if (std.length > 0) parameters.std = std.join(",");
  if (preprocessor.do_flip_channel_order === true) parameters.colour = "BGR";
  return parameters;
}
