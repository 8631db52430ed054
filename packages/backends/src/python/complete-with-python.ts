import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import type { ModelDescription } from "@tritonjs/core/backend";
import type { Clock } from "@tritonjs/core/internal";
import {
  AutoCompleteConfig,
  COMPLETION_METHODS,
  completeBy,
  Log,
  realClock,
} from "@tritonjs/core/internal/worker";
import {
  errorFor,
  fromConfigDataType,
  type ModelInput,
  type ModelOutput,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import { configText, emptyConfig } from "@tritonjs/protocol/config";
import { describeInWorker } from "../description/describe-in-worker.js";
import { type FromPython, writeError } from "./messages.js";
import { PythonSession, type PythonSettings } from "./python-session.js";

/** A class without a base class. If its file does not contain the method's name, the class does not have the method. */
const PLAIN_CLASS = /^class\s+TritonPythonModel\s*(\(\s*(object)?\s*\))?\s*:/m;
const METHOD = "auto_complete_config";

/** Whether a model may have `auto_complete_config`. Returns false when its source rules that out. */
function mayCompleteItself(source: string): boolean {
  return !PLAIN_CLASS.test(source) || source.includes(METHOD);
}

/**
 * Completes a configuration with a model's `auto_complete_config`, in a process of its own. The method's calls on the
 * configuration are applied here, so there is one place for the rules.
 *
 * @throws TritonError INTERNAL for a file that cannot be imported and for errors that the method raises
 */
export async function completeWithPython(
  config: AutoCompleteConfig,
  settings: PythonSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  if (!mayCompleteItself(await readFile(settings.path, "utf8"))) return;
  const { name } = config.config;
  const { path, backend } = settings;
  const task = {
    type: "complete",
    path,
    ...(backend && { modelDirectory: backend.modelDirectory }),
    model: name,
    config: configText(config.config),
  } as const;
  const session: PythonSession = new PythonSession({
    settings,
    modelName: name,
    name,
    task,
    clock,
    log,
    message: (message) => change(session, config, message),
  });
  try {
    await session.ready;
  } finally {
    session.kill();
    await session.ended;
  }
}

function change(session: PythonSession, config: AutoCompleteConfig, message: FromPython): void {
  if (message.type !== "change") return;
  const answer = { type: "answer", call: message.call };
  try {
    const how = COMPLETION_METHODS.find((one) => one === message.how);
    if (how === undefined)
      throw new TritonError("INTERNAL", `unknown change '${message.how}' of a model configuration`);
    completeBy(config, how, camelCase(message.arguments[0]));
    session.send({ ...answer, value: configText(config.config) });
  } catch (error) {
    session.send({ ...answer, error: writeError(error) });
  }
}

/** Renames the keys of a tensor, which Python writes in snake case. */
function camelCase(argument: unknown): unknown {
  if (typeof argument !== "object" || argument === null) return argument;
  const { data_type: dataType, ...rest } = argument as Record<string, unknown>;
  return dataType === undefined ? rest : { ...rest, dataType };
}

interface PythonDescription {
  readonly settings: PythonSettings;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Describes a model with its `auto_complete_config`, for `bind`. This thread blocks meanwhile. Returns undefined for a
 * model without the method.
 *
 * @throws TritonError with the reason why the model cannot be described
 */
export function describeWithPython(what: PythonDescription): ModelDescription | undefined {
  const { path, stubTimeoutMs, loadTimeoutMs } = what.settings;
  if (!mayCompleteItself(readFileSync(path, "utf8"))) return undefined;
  const entry = new URL("./complete-with-python.js", import.meta.url);
  const withinMs = stubTimeoutMs + loadTimeoutMs + 1000;
  const description = describeInWorker(entry, what, withinMs, `the Python model '${path}'`);
  const isSilent =
    description.inputs.length === 0 &&
    description.outputs.length === 0 &&
    description.maxBatchSize === undefined &&
    description.decoupled === undefined;
  return isSilent ? undefined : description;
}

/** Describes a Python model for a synchronous `bind`, in a worker. */
export async function describe(data: unknown): Promise<ModelDescription> {
  const { settings, parameters } = data as PythonDescription;
  const nothing = () => {};
  const log = new Log({ error: nothing, warn: nothing, info: nothing, debug: nothing });
  const name = basename(settings.path, ".py");
  const config = new AutoCompleteConfig({
    ...emptyConfig(),
    name,
    parameters: configParameters(parameters),
  });
  let saysBatchSize = false;
  const setMaxBatchSize = config.setMaxBatchSize.bind(config);
  config.setMaxBatchSize = (size) => {
    saysBatchSize = true;
    setMaxBatchSize(size);
  };
  await completeWithPython(config, settings, { clock: realClock, log });
  const { input, output, maxBatchSize, modelTransactionPolicy } = config.config;
  return {
    inputs: input.map((one) => ({ ...specOf(one), ...(one.optional ? { optional: true } : {}) })),
    outputs: output.map(specOf),
    ...(saysBatchSize ? { maxBatchSize } : {}),
    ...(modelTransactionPolicy === undefined ? {} : { decoupled: modelTransactionPolicy.decoupled }),
    asInConfig: true,
  };
}

function specOf({ name, dataType, dims }: ModelInput | ModelOutput): TensorSpec {
  return { name, dtype: fromConfigDataType(dataType)!, shape: dims };
}

/** A model may download its weights in `initialize`. The limit still detects a model that hangs. */
export const LOAD_TIMEOUT_SECONDS = 3600;

/** Triton's default. */
export const STUB_TIMEOUT_SECONDS = 30;

/** @throws TritonError UNSUPPORTED on Windows, where processes do not inherit descriptors as the stub needs */
export function assertPythonCanRun(): void {
  if (process.platform === "win32") {
    throw errorFor("PLATFORM_NOT_SUPPORTED", "Python models cannot run on Windows");
  }
}

/** Converts parameters to the form of a configuration. */
export function configParameters(parameters: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(parameters).map(([name, stringValue]) => [name, { stringValue }]));
}
