import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Logger, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { repositoryServer } from "../command/repository-server.js";
import { invalidOption } from "../command/tool-errors.js";
import type { TestedModel } from "../data/data-set.js";
import { CallsView, type ServerView } from "../measure/server-watch.js";
import { readModel, serverCallsOf } from "../target/read-model.js";
import type { TargetOptions } from "../target/target-options.js";
import type { InProcessSettings, InProcessSource, TargetSettings } from "./perf-settings.js";

/**
 * Connects to a server, or loads the models of this process, and asks for the model.
 *
 * @throws TritonError UNAVAILABLE without a server, NOT_FOUND for an unknown model, INVALID_ARG for a module that has no
 * `Triton`
 */
export async function openTarget(settings: TargetSettings): Promise<OpenedTarget> {
  if (settings.kind === "openai") return { options: settings, close: async () => {} };
  if (settings.kind === "in-process") return openInProcess(settings);
  const model = await readModel(settings);
  const view = new CallsView(serverCallsOf(settings));
  return { options: settings, model, view, close: async () => view.close() };
}

async function openInProcess({ source, ...model }: InProcessSettings): Promise<OpenedTarget> {
  const triton = await openTriton(source, model.modelName);
  const close = () => triton.close();
  try {
    const options = { ...model, source: { triton } };
    const view = new CallsView(serverCallsOf(options));
    const metricsPage = () => serviceOf(triton).metrics();
    return { options, model: await readModel(options), view, metricsPage, close };
  } catch (error) {
    await close();
    throw error;
  }
}

export interface OpenedTarget {
  readonly options: TargetOptions;
  readonly model?: TestedModel;
  /** Undefined where there are no statistics to ask for. */
  readonly view?: ServerView;
  /** Reads the metrics page of a target that has no address. */
  readonly metricsPage?: () => Promise<string>;
  close(): Promise<void>;
}

/**
 * Warnings about a server without Triton's extensions of the v2 protocol: the report lacks figures, or requests may fail.
 */
export function serverNotices(
  target: TargetSettings,
  model: TestedModel | undefined,
  extensions: readonly string[],
): string[] {
  const notices: string[] = [];
  if (model?.isFromMetadata) {
    notices.push(
      `The server does not tell the configuration of model '${model.name}'. Its tensors and its batch axis are those ` +
        "of the metadata, and it counts as a model without sequences.",
    );
  }
  if (!extensions.includes("statistics")) {
    notices.push(
      "The server does not tell its statistics: it lacks the extension 'statistics' of the v2 protocol. The report has " +
        "no times of the server.",
    );
  }
  const { inputTensorFormat = "binary", outputTensorFormat = "binary" } =
    target.kind === "http" ? target : {};
  const hasBinary = inputTensorFormat === "binary" || outputTensorFormat === "binary";
  if (target.kind === "http" && !extensions.includes("binary_tensor_data") && hasBinary) {
    notices.push(
      "The server does not list the extension 'binary_tensor_data' of the v2 protocol. If it refuses the requests, use " +
        "--input-tensor-format json --output-tensor-format json.",
    );
  }
  return notices;
}

/**
 * Loads a model of a repository with the models that it needs, or opens a module that exports a `Triton`. Close the
 * `Triton` after use.
 *
 * @param model model that has to be ready; others may have failed to load
 * @throws TritonError INVALID_ARG for a module without a `Triton`, and the errors of `Triton.ready`
 */
export async function openTriton(source: InProcessSource, model: string): Promise<Triton> {
  const log = new HeldErrors();
  const triton =
    "repository" in source
      ? await repositoryServer(
          {
            modelRepository: source.repository,
            modelControlMode: "explicit",
            loadModel: [model, ...(source.calledModels ?? [])],
          },
          { logger: log },
        )
      : await importOf(resolve(source.module), "triton", isTriton, "a Triton as 'triton' or as default");
  try {
    await triton.ready();
  } catch (error) {
    if (!serviceOf(triton).isModelReady(model, "")) {
      await triton.close();
      throw error;
    }
  }
  log.release();
  return triton;
}

/**
 * Makes messages warnings of the process, as without a logger. Errors wait until the models are loaded: if the measured
 * one is not, `ready` rejects with their texts.
 */
class HeldErrors implements Logger {
  #held: string[] | undefined = [];

  error(message: string): void {
    if (this.#held === undefined) process.emitWarning(message, "TritonError");
    else this.#held.push(message);
  }

  warn(message: string): void {
    process.emitWarning(message, "TritonWarning");
  }

  info(): void {}

  debug(): void {}

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const message of held) this.error(message);
  }
}

/** Imports an export of a module of the user, or its default export. */
export async function importOf<T>(
  path: string,
  name: string,
  isExpected: (value: unknown) => value is T,
  expected: string,
): Promise<T> {
  if (!existsSync(path)) throw invalidOption(`--module: expected a file, '${path}' does not exist`);
  const exported = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  const found = [exported[name], exported.default].find(isExpected);
  if (found !== undefined) return found;
  const names = Object.keys(exported).join(", ") || "no exports";
  throw invalidOption(`--module: expected '${path}' to export ${expected}, got ${names}`);
}

/** Waits until the models of a `Triton` are loaded. Closes it if one is not. */
export async function readyOrClosed(made: Triton | Promise<Triton>): Promise<Triton> {
  const triton = await made;
  try {
    await triton.ready();
  } catch (error) {
    await triton.close();
    throw error;
  }
  return triton;
}

/** The module may use another copy of the package, so its class does not tell. */
function isTriton(value: unknown): value is Triton {
  return (
    typeof value === "object" && value !== null && "server" in value && "ready" in value && "close" in value
  );
}
