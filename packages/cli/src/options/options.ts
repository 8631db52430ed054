import { accessOptions, cloudOptions, frontendOptions } from "./frontend-options.js";
import { type Option, OptionError } from "./option.js";
import { machineOptions, repositoryOptions, serverOptions, traceOptions } from "./server-options.js";

/** Options by group and name, in the order of the help: tritonserver's, and a few of our own. */
export const optionGroups = {
  ...serverOptions,
  ...accessOptions,
  ...repositoryOptions,
  ...frontendOptions,
  ...machineOptions,
  ...cloudOptions,
  ...traceOptions,
};

type Groups = typeof optionGroups;
type Table = UnionToIntersection<Groups[keyof Groups]>;
type UnionToIntersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never;

export const allOptions = Object.assign({}, ...Object.values(optionGroups)) as Table;

/** Name of an option, without the dashes. */
export type OptionName = keyof Table & string;

/** The values of all options. */
export type OptionValues = {
  readonly [Name in OptionName]: Table[Name] extends Option<infer T> ? T : never;
};

export interface ReadOptions {
  readonly values: OptionValues;
  readonly warnings: readonly string[];
  /** Options that were given explicitly, rather than with their initial value. */
  readonly given: ReadonlySet<string>;
}

export type GivenOptions = readonly (readonly [name: string, text: string])[];

export function findOption(name: string): Option<unknown> | undefined {
  return Object.hasOwn(allOptions, name) ? (allOptions[name as OptionName] as Option<unknown>) : undefined;
}

export function readOptions(sources: readonly GivenOptions[]): ReadOptions {
  const values = new Map<string, unknown>(
    Object.entries(allOptions).map(([name, option]) => [name, option.initial]),
  );
  const warnings: string[] = [];
  const given = new Set<string>();
  for (const source of [...sources].reverse()) {
    const before = new Set(given);
    for (const [name, text] of source) {
      if (before.has(name)) continue;
      const option = findOption(name)!;
      if (option.deprecated !== undefined) warnings.push(option.deprecated(text));
      values.set(name, readOne(name, option, text, values.get(name)));
      given.add(name);
    }
  }
  for (const name of given) {
    const { noEffect, noEffectHere } = findOption(name)!;
    const reason = noEffect ?? noEffectHere;
    if (reason !== undefined) warnings.push(`Warning: '--${name}' has no effect: ${reason}.`);
  }
  return { values: Object.fromEntries(values) as OptionValues, warnings, given };
}

function readOne(name: string, option: Option<unknown>, text: string, previous: unknown): unknown {
  try {
    return option.read(text, previous);
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    // The usage, of 130 lines, would push the one line that matters off the screen.
    throw new OptionError(`Bad option: "--${name}".\n${error.message}`, "alone");
  }
}

/** Checks options against each other. */
export function checkOptions({ values, given }: ReadOptions): void {
  if (values["load-model"].length > 0 && values["model-control-mode"] !== "explicit") {
    throw new OptionError(
      "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.",
    );
  }
  if (given.has("response-cache-byte-size") && given.has("cache-config")) {
    throw new OptionError(
      "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one " +
        "or the other.",
    );
  }
  if (given.has("capture-rate") && values["capture-directory"] === "") {
    throw new OptionError("Error: Use of '--capture-rate' requires setting '--capture-directory' as well.");
  }
  checkPorts(values);
  for (const { key } of values["host-policy"]) {
    if (key !== "numa-node" && key !== "cpu-cores") {
      throw triton(
        `setting host policy: Unsupported - Unsupported host policy setting '${key}' is specified, supported ` +
          "settings are 'numa-node', 'cpu-cores'",
      );
    }
  }
  for (const [, fraction] of values["model-load-gpu-limit"]) {
    if (fraction < 0 || fraction > 1) {
      throw triton(
        "setting model load GPU limit: Invalid argument - expects limit fraction to be in range [0.0, 1.0], got " +
          fraction.toFixed(6),
      );
    }
  }
}

export function metricsAddress(values: OptionValues): string {
  return values["metrics-address"] === "" ? values["http-address"] : values["metrics-address"];
}

/** Services that listen, by the start of the names of their options: their names in tritonserver's texts. */
export const SERVICES = {
  http: { name: "HTTP", service: "HTTP service", logName: "HTTPService" },
  grpc: { name: "GRPC", service: "GRPC service", logName: "GRPCInferenceService" },
  metrics: { name: "metrics", service: "Metrics service", logName: "Metrics Service" },
  openai: { name: "OpenAI", service: "OpenAI frontend", logName: "OpenAI frontend" },
  sagemaker: { name: "SageMaker", service: "Sagemaker service", logName: "Sagemaker HTTPService" },
  "vertex-ai": { name: "Vertex AI", service: "Vertex AI service", logName: "Vertex AI HTTPService" },
} as const;

export type ServiceName = keyof typeof SERVICES;

/** Where the service listens; undefined if the options do not ask for it. */
export function listenerOf(
  values: OptionValues,
  name: ServiceName,
): { readonly address: string; readonly port: number } | undefined {
  const port = values[`${name}-port`];
  if (port === undefined || (name !== "openai" && !values[`allow-${name}`])) return undefined;
  if (name === "metrics") return { address: metricsAddress(values), port };
  if (name === "grpc" || name === "openai") return { address: values[`${name}-address`], port };
  return { address: values["http-address"], port };
}

function checkPorts(values: OptionValues): void {
  const services = (Object.keys(SERVICES) as ServiceName[]).flatMap((key) => {
    const listener = listenerOf(values, key);
    return listener === undefined ? [] : [{ name: SERVICES[key].name, ...listener }];
  });
  for (const { name, port } of services) {
    if (port < 0 || port > 65535) throw new OptionError(`port for ${name}: expected 0 to 65535, got ${port}`);
  }
  const range = values["sagemaker-safe-port-range"];
  if (values["allow-sagemaker"] && range !== undefined) {
    for (const { name, port } of services) {
      if (name === "SageMaker" || (port >= range.from && port <= range.to)) continue;
      throw new OptionError(
        `The server cannot listen to ${name} requests at port ${port}, allowed port range is [${range.from}, ${range.to}]`,
      );
    }
  }
  services.forEach((one, index) => {
    const other = services.slice(index + 1).find(({ address, port }) => {
      return port !== 0 && address === one.address && port === one.port;
    });
    if (other === undefined) return;
    throw new OptionError(
      `The server cannot listen to ${one.name} requests and ${other.name} requests at the same address and port ` +
        `${one.address}:${one.port}`,
    );
  });
}

function triton(text: string): OptionError {
  return new OptionError(`Failed to build Triton option:\nerror: ${text}`, "alone");
}
