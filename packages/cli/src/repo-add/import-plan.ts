import type { ModelConfig } from "@tritonjs/protocol";
import { errorFor, type TritonError } from "@tritonjs/protocol";

/** One file of a model folder: a copy of another file, new content, or what a function writes. */
export type PlannedFile =
  | { readonly path: string; readonly from: string }
  | { readonly path: string; readonly content: string | Uint8Array }
  | { readonly path: string; write(path: string): Promise<unknown> };

/** One model folder of a repository. */
export interface PlannedModel {
  readonly name: string;
  readonly config: ConfigText;
  /** Files of the version's directory. */
  readonly versionFiles: readonly PlannedFile[];
  /** Files beside the configuration. */
  readonly files?: readonly PlannedFile[];
}

/** The models that serve one source. */
export interface ImportPlan {
  /** The kind of the source, for texts. */
  readonly kind: string;
  /** The model that clients call comes last, behind the steps that it needs. */
  readonly models: readonly PlannedModel[];
  /** What the owner of the model should know. */
  readonly notes: readonly string[];
}

/** Options of a plan. */
export interface PlanOptions {
  readonly name: string;
  /** Largest batch of models that can batch. */
  readonly maxBatchSize: number;
  /** Precision of the graph, by the names of transformers.js. */
  readonly dtype?: string | undefined;
  /** Path of the graph inside the directory. */
  readonly file?: string | undefined;
  /** Whether a text model takes two texts. */
  readonly pair?: boolean | undefined;
}

/** A tensor of a configuration, without the rows. */
export interface TensorText {
  readonly name: string;
  /** Data type as configurations name it: `TYPE_FP32`. */
  readonly type: string;
  readonly dims: readonly number[];
  readonly labels?: boolean;
}

/** A step of an ensemble. Tensors of the model are keys, those of the ensemble values. */
export interface StepText {
  readonly model: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

/** What a configuration of an imported model says. */
export interface ConfigText {
  readonly backend?: string;
  readonly platform?: string;
  readonly maxBatchSize?: number;
  readonly input?: readonly TensorText[];
  readonly output?: readonly TensorText[];
  readonly parameters?: Readonly<Record<string, string>>;
  readonly defaultModelFilename?: string;
  readonly steps?: readonly StepText[];
  readonly decoupled?: boolean;
}

/** File with the names of the classes, beside the configuration. */
export const LABELS = "labels.txt";

/** Writes a configuration as a person would. The server completes the rest. */
export function importedConfig(name: string, kind: string, config: ConfigText): string {
  const { maxBatchSize, parameters = {}, steps } = config;
  const lines = [`# Added by tritonjs repo add: ${kind}.`, `name: ${quoted(name)}`];
  for (const key of ["backend", "platform"] as const)
    if (config[key] !== undefined) lines.push(`${key}: ${quoted(config[key])}`);
  if (config.defaultModelFilename !== undefined)
    lines.push(`default_model_filename: ${quoted(config.defaultModelFilename)}`);
  if (maxBatchSize !== undefined) lines.push(`max_batch_size: ${maxBatchSize}`);
  for (const side of ["input", "output"] as const) {
    const tensors = config[side] ?? [];
    if (tensors.length > 0) lines.push(`${side} [`, tensors.map(tensorText).join(",\n"), "]");
  }
  if (config.decoupled === true) lines.push("model_transaction_policy { decoupled: true }");
  for (const [key, value] of Object.entries(parameters))
    lines.push(`parameters { key: ${quoted(key)} value: { string_value: ${quoted(value)} } }`);
  if (steps !== undefined) lines.push("ensemble_scheduling {", ...steps.map(stepText), "}");
  else if (maxBatchSize !== undefined && maxBatchSize > 1) lines.push("dynamic_batching { }");
  return `${lines.join("\n")}\n`;
}

const quoted = (text: string): string => JSON.stringify(text);

function tensorText({ name, type, dims, labels = false }: TensorText): string {
  const file = labels ? ` label_filename: ${quoted(LABELS)}` : "";
  return `  { name: ${quoted(name)} data_type: ${type} dims: [ ${dims.join(", ")} ]${file} }`;
}

function stepText({ model, inputs, outputs }: StepText): string {
  const maps = [["input_map", inputs] as const, ["output_map", outputs] as const].flatMap(([field, map]) =>
    Object.entries(map).map(([key, value]) => `    ${field} { key: ${quoted(key)} value: ${quoted(value)} }`),
  );
  return [`  step {`, `    model_name: ${quoted(model)}`, "    model_version: -1", ...maps, "  }"].join("\n");
}

/** The tensors of a completed configuration. */
export function tensorTexts(tensors: ModelConfig["input"] | ModelConfig["output"]): TensorText[] {
  return tensors.map(({ name, dataType, dims }) => ({ name, type: dataType, dims }));
}

/** The error for a source that is not served. */
export function cannotServe(path: string, text: string): TritonError {
  return errorFor("MODEL_NOT_SUPPORTED", `cannot add '${path}': ${text}`);
}

/** The error for a source with faulty files. */
export function badSource(path: string, text: string, cause?: unknown): TritonError {
  return errorFor("INVALID_MODEL", `cannot add '${path}': ${text}`, { cause });
}
