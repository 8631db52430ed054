import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative } from "node:path";
import { OnnxModel } from "@tritonjs/backends/optimize";
import { badSource, cannotServe, type PlannedFile, type PlanOptions } from "./import-plan.js";

export type HuggingFaceJson = Readonly<Record<string, unknown>>;

/** Precisions of a graph, as transformers.js names them, with the end of the file's name. */
const DTYPES: Readonly<Record<string, string>> = {
  fp32: "",
  fp16: "_fp16",
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  q4: "_q4",
  q4f16: "_q4f16",
  bnb4: "_bnb4",
};

/** Precisions in the order in which a processor prefers them. */
const PREFERRED = ["fp32", "q4", "q8", "int8", "uint8", "bnb4", "fp16", "q4f16"];

/** A directory as Hugging Face's libraries save models, with graphs for ONNX Runtime. */
export class HuggingFaceDirectory {
  private constructor(
    readonly path: string,
    readonly config: HuggingFaceJson,
  ) {}

  /** @returns undefined for a directory without `config.json` and `genai_config.json` */
  static async open(path: string): Promise<HuggingFaceDirectory | undefined> {
    const config = await readJson(join(path, "config.json"));
    if (config === undefined && !(await isFile(join(path, "genai_config.json")))) return undefined;
    return new HuggingFaceDirectory(path, config ?? {});
  }

  /** The class that was saved, such as `BertForSequenceClassification`; empty if the configuration has none. */
  get architecture(): string {
    const { architectures } = this.config;
    const [first] = Array.isArray(architectures) ? (architectures as unknown[]) : [];
    return typeof first === "string" ? first : "";
  }

  /** The kind of the model for texts. */
  get label(): string {
    const { model_type: type } = this.config;
    return this.architecture || (typeof type === "string" ? type : "a model without a type");
  }

  has(name: string): Promise<boolean> {
    return isFile(join(this.path, name));
  }

  /** @throws TritonError INVALID_ARG for a file that is not a JSON object */
  read(name: string): Promise<HuggingFaceJson | undefined> {
    return readJson(join(this.path, name));
  }

  /** A file with a JSON list; empty without the file. */
  async readList(name: string): Promise<readonly unknown[]> {
    const value = await readJsonFile(join(this.path, name));
    if (value === undefined) return [];
    if (Array.isArray(value)) return value as unknown[];
    throw badSource(join(this.path, name), "expected a JSON list, got another value");
  }

  /** Files that exist, under the same paths. */
  async files(names: readonly string[]): Promise<PlannedFile[]> {
    const found: PlannedFile[] = [];
    for (const name of names)
      if (await this.has(name)) found.push({ path: name, from: join(this.path, name) });
    return found;
  }

  /**
   * Finds a graph by the precision, in the directory or its folder `onnx`.
   *
   * @param stems names without the precision
   * @returns its path in the directory; undefined if there is none
   * @throws TritonError for a precision or file that is not there
   */
  async graph(
    stems: readonly string[],
    { dtype, file }: Pick<PlanOptions, "dtype" | "file">,
  ): Promise<string | undefined> {
    if (file !== undefined) {
      const path = relative(this.path, join(this.path, file));
      if (isAbsolute(file) || path.startsWith(".."))
        throw badSource(this.path, `expected the path of a graph in the directory, got '${file}'`);
      if (await this.has(path)) return path;
      throw badSource(this.path, `expected the graph '${file}', got none`);
    }
    if (dtype !== undefined && DTYPES[dtype] === undefined) {
      throw badSource(this.path, `dtype: expected one of ${Object.keys(DTYPES).join(", ")}, got '${dtype}'`);
    }
    for (const name of dtype === undefined ? PREFERRED : [dtype]) {
      for (const stem of stems) {
        const base = `${stem}${DTYPES[name]}.onnx`;
        for (const path of [base, join("onnx", base)]) if (await this.has(path)) return path;
      }
    }
    if (dtype === undefined) return undefined;
    const wanted = stems.map((stem) => `${stem}${DTYPES[dtype]}.onnx`).join(" or ");
    throw badSource(this.path, `dtype ${dtype}: expected the file ${wanted}, here or in onnx/, got none`);
  }

  /**
   * A graph and its files of external data.
   *
   * @param name path of the graph in the version's directory; that in this directory unless given. The data stay beside it
   */
  async graphFiles(path: string, name = path): Promise<PlannedFile[]> {
    const model = await OnnxModel.read(join(this.path, path));
    const [from, to] = [dirname(join(this.path, path)), dirname(name)];
    const data = [...model.externalFiles()].map((file) => ({ path: join(to, file), from: join(from, file) }));
    return [{ path: name, from: join(this.path, path) }, ...data];
  }

  /** @throws TritonError UNSUPPORTED with the command that makes what is missing */
  noGraph(): Error {
    return cannotServe(
      this.path,
      `expected an ONNX graph (model.onnx, here or in onnx/), got none for ${this.label}; export it: ` +
        `optimum-cli export onnx --model ${this.path} <folder>`,
    );
  }
}

export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}

async function readJson(path: string): Promise<HuggingFaceJson | undefined> {
  const value = await readJsonFile(path);
  if (value === undefined) return undefined;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as HuggingFaceJson;
  throw badSource(path, "expected a JSON object, got another value");
}

async function readJsonFile(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw badSource(path, `cannot read it: ${(error as Error).message}`, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badSource(path, `expected JSON, got other text: ${(error as Error).message}`, error);
  }
}

/** A member that is an object; an empty one otherwise. */
export function objectOf(value: unknown): HuggingFaceJson {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as HuggingFaceJson)
    : {};
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
