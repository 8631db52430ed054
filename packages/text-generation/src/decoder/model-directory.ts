import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";

/** A JSON object of a file. */
export type ModelFileObject = Readonly<Record<string, unknown>>;

/** Contents of a model's directory besides its graph. */
export interface ModelDirectory {
  /** Path of the graph. */
  readonly model: string;
  readonly config: ModelFileObject;
  readonly generation: ModelFileObject;
  readonly tokenizer: ModelFileObject;
  readonly tokenizerConfig: ModelFileObject;
}

/** Places of the graph, in order. */
const GRAPHS = ["model.onnx", join("onnx", "model.onnx")];

const REQUIRED = ["config.json", "tokenizer.json"];

/**
 * Finds the graph of a model, and checks that the files beside it exist.
 *
 * @returns path of the graph
 * @throws TritonError NOT_FOUND that names the missing file
 */
export function findGraph(directory: string): string {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
    throw missing(`expected a directory at ${directory}, got ${isFile(directory) ? "a file" : "nothing"}`);
  }
  const graph = GRAPHS.map((name) => join(directory, name)).find(isFile);
  if (graph === undefined) {
    throw missing(`expected ${GRAPHS.join(" or ")} in ${directory}, as Hugging Face Optimum exports them`);
  }
  for (const name of REQUIRED) {
    if (!isFile(join(directory, name))) throw missing(`expected the file ${name} in ${directory}`);
  }
  return graph;
}

/**
 * Reads the files of a model. `generation_config.json` and `tokenizer_config.json` may be missing.
 *
 * @throws TritonError NOT_FOUND for missing files, INVALID_ARG for files that are not objects of JSON
 */
export async function readModelDirectory(directory: string): Promise<ModelDirectory> {
  const model = findGraph(directory);
  const read = (name: string) => readJson(join(directory, name));
  const [config, generation, tokenizer, tokenizerConfig] = await Promise.all([
    read("config.json"),
    read("generation_config.json"),
    read("tokenizer.json"),
    read("tokenizer_config.json"),
  ]);
  return { model, config, generation, tokenizer, tokenizerConfig };
}

/** Reads an object; an empty one if there is no file. */
async function readJson(path: string): Promise<ModelFileObject> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw broken(path, error.message, error);
  });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw broken(path, `text that is not JSON (${(error as Error).message})`, error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as ModelFileObject;
  throw broken(path, value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);
}

function broken(path: string, got: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", `cannot read ${path}: expected a JSON object, got ${got}`, {
    reason: "INVALID_MODEL",
    cause,
  });
}

function missing(what: string): TritonError {
  return new TritonError("NOT_FOUND", `cannot open the decoder: ${what}`);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
