import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { TritonError } from "@tritonjs/protocol";

const CONFIG = "tokenizer_config.json";
/** Directory of named templates, beside `chat_template.jinja`. */
const ADDITIONAL = "additional_chat_templates";

/** Template of a name, and the file that it comes from. */
export interface TemplateSource {
  /** `default`, or the name of a further template such as `tool_use`. */
  readonly name: string;
  readonly text: string;
  readonly file: string;
}

/** Templates of a model's directory, and the special tokens that they print. */
export interface TemplateFiles {
  readonly templates: readonly TemplateSource[];
  readonly tokens: Readonly<Record<string, string>>;
}

/**
 * Reads `tokenizer_config.json`, `chat_template.jinja`, `chat_template.json` and `additional_chat_templates` of a
 * directory. A template in a file of its own replaces the one of the same name in `tokenizer_config.json`, as in
 * transformers.
 *
 * @throws TritonError NOT_FOUND without `tokenizer_config.json`; INVALID_ARG for a file with other content than its
 * name says
 */
export async function readTemplateFiles(directory: string): Promise<TemplateFiles> {
  const file = join(directory, CONFIG);
  const config = await readJson(file);
  if (config === undefined) {
    throw new TritonError("NOT_FOUND", `cannot read the chat template: expected the file ${file}`);
  }
  const templates = new Map(configured(config.chat_template, file).map((source) => [source.name, source]));
  for (const source of await ownFiles(directory)) templates.set(source.name, source);
  return { templates: [...templates.values()], tokens: specialTokens(config) };
}

/** Templates in `chat_template` of a configuration: a text, or a list of named ones. */
function configured(value: unknown, file: string): TemplateSource[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [{ name: "default", text: value, file }];
  if (!Array.isArray(value)) throw broken(file, `"chat_template" to be a string or a list`, typeof value);
  return value.map((entry: unknown) => {
    const { name, template } = (entry ?? {}) as Record<string, unknown>;
    if (typeof name === "string" && typeof template === "string") return { name, text: template, file };
    throw broken(file, `entries of "chat_template" with "name" and "template"`, JSON.stringify(entry));
  });
}

async function ownFiles(directory: string): Promise<TemplateSource[]> {
  const found: TemplateSource[] = [];
  const legacy = join(directory, "chat_template.json");
  const json = await readJson(legacy);
  if (json !== undefined) found.push(...configured(json.chat_template, legacy));
  const own = join(directory, "chat_template.jinja");
  const text = await readText(own);
  if (text !== undefined) found.push({ name: "default", text, file: own });
  for (const entry of (await readdir(join(directory, ADDITIONAL)).catch(() => [])).sort()) {
    if (!entry.endsWith(".jinja")) continue;
    const further = join(directory, ADDITIONAL, entry);
    const named = await readText(further);
    if (named !== undefined) found.push({ name: basename(entry, ".jinja"), text: named, file: further });
  }
  return found;
}

/** Members such as `bos_token`, which are a text or an object with `content`. */
function specialTokens(config: Record<string, unknown>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const [key, value] of Object.entries(config)) {
    if (!key.endsWith("_token")) continue;
    const text =
      typeof value === "object" && value !== null ? (value as { content?: unknown }).content : value;
    if (typeof text === "string") tokens[key] = text;
  }
  return tokens;
}

async function readJson(file: string): Promise<Record<string, unknown> | undefined> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw broken(file, "a JSON object", (error as Error).message);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw broken(file, "a JSON object", Array.isArray(value) ? "an array" : String(value));
}

/** Text of a file; undefined if there is none. */
async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new TritonError("INVALID_ARG", `cannot read ${file}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function broken(file: string, expected: string, got: string): TritonError {
  return new TritonError("INVALID_ARG", `cannot read ${file}: expected ${expected}, got ${got}`);
}
