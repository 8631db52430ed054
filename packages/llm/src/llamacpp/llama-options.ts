import { errorFor } from "@tritonjs/protocol";
import type { LlamaGpu } from "./llama-module.js";

/** Options of {@link llamacpp}. */
export interface LlamaCppOptions {
  /** Task of the model: texts, or one vector for each text. @default "generation" */
  readonly task?: "generation" | "embedding" | undefined;
  /** Slots of llama.cpp's batch: texts that it generates at a time. Others wait in the model's queue. @default 8 */
  readonly sequences?: number | undefined;
  /** Tokens of a prompt and its text together, for each slot. @default that of the file, at most 4096 */
  readonly contextLength?: number | undefined;
  /**
   * Threads of llama.cpp in an instance. They wait for each other in a loop, so on a busy machine more threads than free
   * cores make everything slow. @default 1
   */
  readonly threads?: number | undefined;
  /** Largest number of tokens in a step, of prompts and texts together. @default that of node-llama-cpp, 512 */
  readonly batchSize?: number | undefined;
  /** Kind of GPU. @default "auto" for an instance on a GPU, else false */
  readonly gpu?: LlamaGpu | undefined;
  /** Layers on the GPU. @default as many as fit */
  readonly gpuLayers?: number | undefined;
  /** `refuse` or `warn` for JSON schemas that a grammar cannot hold. @default "refuse" */
  readonly unheldKeywords?: "refuse" | "warn" | undefined;
}

/** Names of the numbers, and their names as parameters of a configuration. */
export const LLAMA_NUMBERS = {
  sequences: "sequences",
  contextLength: "context_length",
  threads: "threads",
  batchSize: "batch_size",
  gpuLayers: "gpu_layers",
} as const;

/** Values of the other options, and their names as parameters. */
export const LLAMA_CHOICES = {
  task: { parameter: "task", values: ["generation", "embedding"] },
  gpu: { parameter: "gpu", values: ["auto", "cuda", "vulkan", "metal", false] },
  unheldKeywords: { parameter: "unheld_keywords", values: ["refuse", "warn"] },
} as const;

/** @throws TritonError INVALID_ARG that lists every invalid option */
export function checkLlamaOptions(options: LlamaCppOptions & { readonly model: unknown }): void {
  const problems: string[] = [];
  const known = ["model", "onWarning", ...Object.keys(LLAMA_NUMBERS), ...Object.keys(LLAMA_CHOICES)];
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) problems.push(`unknown option '${name}': expected one of ${known.join(", ")}`);
  }
  const { model } = options;
  if (!(model instanceof URL) && (typeof model !== "string" || model === "")) {
    problems.push(`model: expected the path of a GGUF file, got ${JSON.stringify(model)}`);
  }
  for (const name of Object.keys(LLAMA_NUMBERS) as (keyof typeof LLAMA_NUMBERS)[]) {
    const value: unknown = options[name];
    const least = name === "gpuLayers" ? 0 : 1;
    if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= least)) continue;
    problems.push(`${name}: expected an integer of at least ${least}, got ${String(value)}`);
  }
  for (const [name, { values }] of Object.entries(LLAMA_CHOICES)) {
    const value = options[name as keyof typeof LLAMA_CHOICES];
    if (value === undefined || (values as readonly unknown[]).includes(value)) continue;
    problems.push(`${name}: expected one of ${values.join(", ")}, got ${String(value)}`);
  }
  if (problems.length > 0) throw errorFor("INVALID_OPTION", `llamacpp: ${problems.join("; ")}`);
}
