import { SUBSTITUTED } from "@tritonjs/core/internal";
import { errorFor, type ModelConfig, optionTypes, throwProblems, unknownOptions } from "@tritonjs/protocol";

/**
 * Another file and backend for models that cannot run here, such as engines of TensorRT. A rule is for the models to which
 * all of `model`, `backend` and `platform` apply, as their configurations are written. The first rule counts.
 *
 * @example
 * ```ts
 * const substitutes: Substitute[] = [
 *   { platform: "tensorrt_plan", use: { backend: "onnxruntime", file: "model.onnx" } },
 *   { model: "thumbnails", use: { backend: "image", parameters: { width: "224", height: "224" } } },
 * ];
 * ```
 */
export interface Substitute {
  readonly model?: string;
  readonly backend?: string;
  readonly platform?: string;
  readonly use: {
    readonly backend: string;
    /** File of the version's directory. @default the usual one of the backend */
    readonly file?: string;
    /** Parameters of the configuration for the backend, beside those that are written. */
    readonly parameters?: Readonly<Record<string, string>>;
  };
}

const RULE_TYPES = optionTypes<Substitute>({ model: "any", backend: "any", platform: "any", use: "any" });
const USE_TYPES = optionTypes<Substitute["use"]>({ backend: "any", file: "any", parameters: "any" });

/** Reads rules that come from elsewhere. @throws TritonError INVALID_ARG that lists all faults */
export function readSubstitutes(value: unknown, where = "substitutes"): readonly Substitute[] {
  if (!Array.isArray(value)) {
    throw errorFor("INVALID_OPTION", `${where}: expected a list of rules, got ${typeof value}`);
  }
  throwProblems(value.flatMap((rule, index) => ruleProblems(`${where}[${index}]`, rule)));
  return value as Substitute[];
}

function ruleProblems(where: string, rule: unknown): string[] {
  if (!isObject(rule)) return [`${where}: expected an object, got ${rule === null ? "null" : typeof rule}`];
  const problems = unknownOptions(where, rule, RULE_TYPES);
  const wanted = (["model", "backend", "platform"] as const).filter((key) => rule[key] !== undefined);
  if (wanted.length === 0) problems.push(`${where}: expected model, backend or platform, got none`);
  problems.push(...wanted.flatMap((key) => textProblems(`${where}.${key}`, rule[key])));
  if (!isObject(rule.use))
    return [...problems, `${where}.use: expected an object with a backend, got ${typeof rule.use}`];
  const { backend, file, parameters = {} } = rule.use;
  problems.push(
    ...unknownOptions(`${where}.use`, rule.use, USE_TYPES),
    ...textProblems(`${where}.use.backend`, backend),
  );
  if (file !== undefined) problems.push(...textProblems(`${where}.use.file`, file));
  if (!isObject(parameters))
    return [...problems, `${where}.use.parameters: expected an object, got ${typeof parameters}`];
  for (const [key, value] of Object.entries(parameters)) {
    if (typeof value !== "string")
      problems.push(`${where}.use.parameters.${key}: expected a string, got ${typeof value}`);
  }
  return problems;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function textProblems(where: string, value: unknown): string[] {
  return typeof value === "string" && value !== ""
    ? []
    : [`${where}: expected a text, got ${JSON.stringify(value)}`];
}

/** The configuration with another backend and file, if a rule is for it. An ensemble has no file. */
export function withSubstitute(
  config: ModelConfig,
  modelName: string,
  rules: readonly Substitute[] = [],
): ModelConfig {
  if (config.ensembleScheduling !== undefined || config.platform === "ensemble") return config;
  const rule = rules.find(
    ({ model = modelName, backend = config.backend, platform = config.platform }) =>
      model === modelName && backend === config.backend && platform === config.platform,
  );
  if (rule === undefined) return config;
  const { backend, file = "", parameters = {} } = rule.use;
  const written = config.platform || config.backend;
  const stands = `for ${written === "" ? "the model as written" : `'${written}'`}: backend '${backend}'`;
  return {
    ...config,
    backend,
    platform: "",
    runtime: "",
    defaultModelFilename: file,
    // Profiles are those of an engine of TensorRT.
    instanceGroup: config.instanceGroup.map((group) => ({ ...group, profile: [] })),
    parameters: {
      ...config.parameters,
      ...Object.fromEntries(Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }])),
      [SUBSTITUTED]: { stringValue: `${stands}${file === "" ? "" : ` with '${file}'`}` },
    },
  };
}
