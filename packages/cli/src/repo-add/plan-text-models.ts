import { join } from "node:path";
import {
  addPooling,
  addScores,
  OnnxModel,
  type PoolingMode,
  type ScoreActivation,
} from "@tritonjs/backends/optimize";
import type { ModelConfig } from "@tritonjs/protocol";
import { inspectModelFile } from "@tritonjs/repository/config";
import { type HuggingFaceDirectory, numberOf, objectOf } from "./hugging-face-directory.js";
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

/** Files of a decoder beside its graph. */
const DECODER_FILES = [
  "config.json",
  "genai_config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "tokenizer.model",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "chat_template.jinja",
  "chat_template.json",
];

/** A decoder with keys and values, which the backend `text_generation` runs with continuous batching. */
export async function planTextGeneration(
  directory: HuggingFaceDirectory,
  graph: string,
  { name, dtype, file }: PlanOptions,
): Promise<ImportPlan> {
  const files = await directory.files(DECODER_FILES);
  const has = (...names: string[]) => names.every((one) => files.some(({ path }) => path === one));
  if (!has("tokenizer.json") && !has("tokenizer.model") && !has("vocab.json", "merges.txt"))
    throw badSource(
      directory.path,
      "expected tokenizer.json, tokenizer.model, or vocab.json and merges.txt, got none",
    );
  const notes =
    has("chat_template.jinja") || has("chat_template.json") || (await hasTemplate(directory))
      ? []
      : ["it has no chat template, so it completes texts; chats need a model with one"];
  const parameters = {
    ...(dtype !== undefined && { dtype }),
    ...(file !== undefined && { file: graph }),
  };
  const model: PlannedModel = {
    name,
    config: { backend: "text_generation", ...(Object.keys(parameters).length > 0 && { parameters }) },
    versionFiles: [...(await directory.graphFiles(graph)), ...files],
  };
  return { kind: `text generation, ${directory.label}`, models: [model], notes };
}

async function hasTemplate(directory: HuggingFaceDirectory): Promise<boolean> {
  return (await directory.read("tokenizer_config.json"))?.chat_template !== undefined;
}

/** Tensors that a tokenizer gives. */
const TOKENS = ["input_ids", "attention_mask", "token_type_ids"];

/** What becomes of the outputs of a graph: a rewritten graph, or the same with its outputs. */
interface Head {
  readonly kind: string;
  /** Rewrites the graph; absent for a graph that stays as it is. */
  change?(model: OnnxModel): void;
  readonly outputs: readonly TensorText[];
  /** Names of the texts that clients send. */
  readonly texts: readonly string[];
  /** Cuts the second text of a pair only. */
  readonly cutsSecond?: boolean;
  /** Whether clients get the tokens, to which the outputs belong. */
  readonly showsTokens?: boolean;
  readonly labels?: readonly string[];
  readonly notes: readonly string[];
}

/** A model that reads texts at once: an ensemble of a tokenizer and the graph. */
export async function planTextReader(
  directory: HuggingFaceDirectory,
  graph: string,
  options: PlanOptions,
): Promise<ImportPlan> {
  const { name, maxBatchSize } = options;
  const path = join(directory.path, graph);
  if (!(await directory.has("tokenizer.json"))) {
    throw cannotServe(
      directory.path,
      "expected tokenizer.json, got none; save the tokenizer once with AutoTokenizer.from_pretrained(...).save_pretrained(...)",
    );
  }
  const config = await describeGraph(path, directory.path);
  const inputs = tensorTexts(config.input);
  const strange = inputs.filter((one) => !TOKENS.includes(one.name));
  if (strange.length > 0) {
    throw cannotServe(
      directory.path,
      `${directory.label} has the input '${strange[0]!.name}': expected ${TOKENS.join(", ")}, which a tokenizer gives`,
    );
  }
  const head = await headOf(directory, config, options);
  const model = await OnnxModel.read(path);
  const steps = { tokens: `${name}_tokens`, model: `${name}_model` };
  const tokenizer = await tokenizerModel(directory, steps.tokens, head, inputs, maxBatchSize);
  const labels = head.labels?.map((label) => label.replaceAll(/\s+/g, " ").trim());
  const graphModel: PlannedModel = {
    name: steps.model,
    config: {
      backend: "onnxruntime",
      maxBatchSize,
      input: inputs,
      output: head.outputs.map((one) => ({ ...one, labels: labels !== undefined })),
    },
    versionFiles: await graphFilesOf(model, directory, graph, head),
    ...(labels !== undefined && { files: [{ path: LABELS, content: `${labels.join("\n")}\n` }] }),
  };
  const shown = head.showsTokens === true ? inputs.filter((one) => one.name === "input_ids") : [];
  const same = (tensors: readonly TensorText[]) =>
    Object.fromEntries(tensors.map((one) => [one.name, one.name]));
  const ensemble: PlannedModel = {
    name,
    config: {
      platform: "ensemble",
      maxBatchSize,
      input: head.texts.map((text) => ({ name: text, type: "TYPE_STRING", dims: [1] })),
      output: [...head.outputs, ...shown],
      steps: [
        {
          model: steps.tokens,
          inputs: Object.fromEntries(head.texts.map((text) => [text, text])),
          outputs: same(inputs),
        },
        { model: steps.model, inputs: same(inputs), outputs: same(head.outputs) },
      ],
    },
    versionFiles: [],
  };
  return {
    kind: `${head.kind}, ${directory.label}`,
    models: [tokenizer, graphModel, ensemble],
    notes: head.notes,
  };
}

async function describeGraph(path: string, source: string): Promise<ModelConfig> {
  const inspection = await inspectModelFile(path);
  if (inspection?.config === undefined)
    throw badSource(source, inspection?.findings[0]?.message ?? `expected an ONNX graph at '${path}'`);
  if (inspection.config.maxBatchSize > 0) return inspection.config;
  throw cannotServe(
    source,
    `expected a graph whose first dimensions are open, so that rows share a run, got fixed ones in '${path}'`,
  );
}

async function graphFilesOf(
  model: OnnxModel,
  directory: HuggingFaceDirectory,
  graph: string,
  { change }: Head,
): Promise<PlannedModel["versionFiles"]> {
  if (change === undefined) return directory.graphFiles(graph, "model.onnx");
  try {
    change(model);
  } catch (error) {
    if (error instanceof RangeError) throw badSource(directory.path, error.message, error);
    throw error;
  }
  return [{ path: "model.onnx", write: (path: string) => model.write(path) }];
}

async function tokenizerModel(
  directory: HuggingFaceDirectory,
  name: string,
  { texts, cutsSecond = false }: Head,
  inputs: readonly TensorText[],
  maxBatchSize: number,
): Promise<PlannedModel> {
  const length = await largestLength(directory);
  const padded = inputs.some((one) => one.name === "attention_mask");
  const parameters = {
    ...(length !== undefined && { max_length: String(length) }),
    padding: "longest",
    // Requests of similar lengths then share a batch of the graph.
    ...(padded &&
      length !== undefined &&
      length % PADDED_TO === 0 && { pad_to_multiple_of: String(PADDED_TO) }),
    ...(cutsSecond && { truncation: "only_second" }),
  };
  return {
    name,
    config: {
      backend: "tokenizer",
      maxBatchSize,
      input: texts.map((text) => ({ name: text, type: "TYPE_STRING", dims: [1] })),
      output: inputs.map((one) => ({ name: one.name, type: one.type, dims: [-1] })),
      parameters,
    },
    versionFiles: await directory.files(["tokenizer.json", "tokenizer_config.json"]),
  };
}

const PADDED_TO = 16;

/** The largest number of tokens that the model was made for. */
async function largestLength(directory: HuggingFaceDirectory): Promise<number | undefined> {
  const sentences = await directory.read("sentence_bert_config.json");
  const own = numberOf(sentences?.max_seq_length);
  const tokenizer = numberOf((await directory.read("tokenizer_config.json"))?.model_max_length);
  const { max_position_embeddings: positions, model_type: type, pad_token_id: pad } = directory.config;
  const places = numberOf(positions);
  // RoBERTa and its relatives count positions from the padding token on.
  const isShifted = /roberta|camembert|bertweet|mpnet|longformer/i.test(String(type));
  const fits = places === undefined ? undefined : isShifted ? places - (numberOf(pad) ?? 1) - 1 : places;
  const limits = [own ?? tokenizer, fits].filter(
    (limit): limit is number => limit !== undefined && limit > 0 && limit < 1_000_000,
  );
  return limits.length === 0 ? undefined : Math.min(...limits);
}

async function headOf(
  directory: HuggingFaceDirectory,
  config: ModelConfig,
  options: PlanOptions,
): Promise<Head> {
  const outputs = tensorTexts(config.output);
  const find = (...names: string[]) => outputs.find((one) => names.includes(one.name));
  const { architecture } = directory;
  if (architecture.endsWith("ForSequenceClassification")) {
    const logits = find("logits") ?? outputs[0]!;
    return scoresHead(directory, logits, options);
  }
  if (architecture.endsWith("ForQuestionAnswering")) {
    const texts = ["question", "context"];
    return { kind: "question answering", outputs, texts, cutsSecond: true, showsTokens: true, notes: [] };
  }
  const hidden = find("last_hidden_state", "token_embeddings");
  const modules = await directory.read("1_Pooling/config.json");
  const ready = find("sentence_embedding", "text_embeds");
  const texts = options.pair === true ? ["text", "text_pair"] : ["text"];
  if (ready !== undefined && options.pair !== true) {
    return { kind: "embeddings", outputs: [ready], texts, notes: [] };
  }
  if (hidden !== undefined && options.pair !== true) return embeddingHead(directory, hidden, modules, config);
  return { kind: "outputs for each token", outputs, texts, showsTokens: true, notes: labelNote(directory) };
}

function labelNote({ architecture, config }: HuggingFaceDirectory): string[] {
  if (!architecture.endsWith("ForTokenClassification")) return [];
  const labels = labelsOf(config)?.join(", ");
  return [`the last dimension of the output has the classes ${labels ?? "of the model"}`];
}

/** Names of the classes in the order of the outputs. */
export function labelsOf(config: Readonly<Record<string, unknown>>): string[] | undefined {
  const names = Object.entries(objectOf(config.id2label));
  if (names.length === 0) return undefined;
  const labels = Array.from({ length: names.length }, (_, i) => `LABEL_${i}`);
  for (const [id, label] of names) {
    if (!/^\d+$/.test(id) || Number(id) >= labels.length || typeof label !== "string") return undefined;
    labels[Number(id)] = label;
  }
  return labels;
}

/** Output of a classifier, and the names of its classes where they fit. */
export function classes(
  config: Readonly<Record<string, unknown>>,
  dims: readonly number[],
): { readonly output: TensorText; readonly labels?: readonly string[]; readonly notes: readonly string[] } {
  const labels = labelsOf(config);
  const size = dims.at(-1) ?? -1;
  const count = size > 0 ? size : (labels?.length ?? -1);
  const output = { name: "scores", type: "TYPE_FP32", dims: [...dims.slice(0, -1), count] };
  if (labels === undefined) return { output, notes: [] };
  if (labels.length === count) return { output, labels, notes: [] };
  const note = `config.json names ${labels.length} classes, and the graph has ${count}: the names are left out`;
  return { output, notes: [note] };
}

function scoresHead({ config }: HuggingFaceDirectory, logits: TensorText, { pair }: PlanOptions): Head {
  const { output, labels, notes } = classes(config, logits.dims);
  const count = output.dims.at(-1)!;
  const given = crossEncoderActivation(config);
  const isPair = pair ?? (count === 1 || given !== undefined);
  const isMulti = config.problem_type === "multi_label_classification";
  const usual: ScoreActivation =
    config.problem_type === "regression" ? "none" : count === 1 || isMulti ? "sigmoid" : "softmax";
  const activation = given ?? usual;
  const change = (model: OnnxModel) => addScores(model, logits.name, activation, output.name);
  if (!isPair || count !== 1) {
    const texts = isPair ? ["text", "text_pair"] : ["text"];
    const kind = isPair ? "classification of pairs" : count === 1 ? "a score for a text" : "classification";
    return { kind, change, outputs: [output], texts, ...(labels !== undefined && { labels }), notes };
  }
  return {
    kind: "cross-encoder",
    change,
    outputs: [output],
    texts: ["query", "document"],
    cutsSecond: true,
    notes,
  };
}

/** What sentence-transformers makes of the scores of a cross-encoder. */
function crossEncoderActivation(config: Readonly<Record<string, unknown>>): ScoreActivation | undefined {
  const name =
    objectOf(config.sentence_transformers).activation_fn ?? config.sbert_ce_default_activation_function;
  if (typeof name !== "string") return undefined;
  const last = name.slice(name.lastIndexOf(".") + 1);
  return last === "Identity"
    ? "none"
    : last === "Sigmoid"
      ? "sigmoid"
      : last === "Softmax"
        ? "softmax"
        : undefined;
}

/** Modes of pooling, by their members of `1_Pooling/config.json`. */
const POOLING: Readonly<Record<string, PoolingMode>> = {
  pooling_mode_cls_token: "cls",
  pooling_mode_max_tokens: "max",
  pooling_mode_mean_tokens: "mean",
  pooling_mode_mean_sqrt_len_tokens: "mean_sqrt_len",
  pooling_mode_lasttoken: "last",
};

/** Modules of sentence-transformers that an embedding here may consist of. */
const MODULES = /\.(Transformer|Pooling|Normalize)$/;

async function embeddingHead(
  directory: HuggingFaceDirectory,
  hidden: TensorText,
  pooling: Readonly<Record<string, unknown>> | undefined,
  { input }: ModelConfig,
): Promise<Head> {
  const modules = await modulesOf(directory);
  const other = modules.find((type) => !MODULES.test(type));
  if (other !== undefined) {
    throw cannotServe(
      directory.path,
      `modules.json has '${other}': expected Transformer, Pooling and Normalize; export the whole model, so that it has ` +
        "the output sentence_embedding",
    );
  }
  const known = Object.entries(POOLING).flatMap(([member, mode]) =>
    pooling?.[member] === true ? [mode] : [],
  );
  const strange = Object.entries(pooling ?? {}).find(
    ([member, value]) => member.startsWith("pooling_mode") && value === true && POOLING[member] === undefined,
  );
  if (strange !== undefined) {
    const text = `1_Pooling/config.json has ${strange[0]}: expected one of ${Object.keys(POOLING).join(", ")}`;
    throw cannotServe(directory.path, text);
  }
  const modes: readonly PoolingMode[] = known.length > 0 ? known : ["mean"];
  const normalize = modules.length === 0 || modules.some((type) => type.endsWith(".Normalize"));
  const mask = input.some(({ name }) => name === "attention_mask") ? "attention_mask" : undefined;
  const size = hidden.dims.at(-1) ?? -1;
  const output = { name: "embedding", type: "TYPE_FP32", dims: [size > 0 ? size * modes.length : -1] };
  const pooled = { hidden: hidden.name, modes, normalize, output: output.name };
  const notes =
    modules.length > 0 || pooling !== undefined
      ? []
      : [
          "it has no modules.json of sentence-transformers: an embedding is the mean of the tokens, with length 1",
        ];
  return {
    kind: "embeddings",
    change: (model) => addPooling(model, mask === undefined ? pooled : { ...pooled, mask }),
    outputs: [output],
    texts: ["text"],
    notes,
  };
}

async function modulesOf(directory: HuggingFaceDirectory): Promise<string[]> {
  const list = await directory.readList("modules.json");
  return list.map((module) => String(objectOf(module).type));
}
