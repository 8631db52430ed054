import { readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative } from "node:path";
import { OnnxModel } from "@tritonjs/backends/optimize";
import { GRAPH_DTYPES, graphPaths, PREFERRED_DTYPES } from "@tritonjs/protocol";
import { badSource, cannotServe, type PlannedFile, type PlanOptions } from "./import-plan.js";

export type HuggingFaceJson = Readonly<Record<string, unknown>>;

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
    const known = GRAPH_DTYPES.find((one) => one === dtype);
    if (dtype !== undefined && known === undefined) {
      throw badSource(this.path, `dtype: expected one of ${GRAPH_DTYPES.join(", ")}, got '${dtype}'`);
    }
    for (const one of known === undefined ? PREFERRED_DTYPES.cpu : [known]) {
      for (const path of graphPaths(stems, one)) if (await this.has(path)) return path;
    }
    if (known === undefined) return undefined;
    const wanted = stems.map((stem) => graphPaths([stem], known)[0]).join(" or ");
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
