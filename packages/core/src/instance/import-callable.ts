import { existsSync } from "node:fs";
import nodeModule from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { callableProblems } from "../callback/batch-decorators.js";
import { rememberOriginal } from "../callback/callback-error.js";
import {
  type AnyInferFunc,
  type InstanceInfo,
  STEPWISE_IS_MISSING,
  STEPWISE_IS_TOLD,
  styleOf,
} from "../callback/infer-func.js";
import type { LogSubject } from "../observe/log.js";
import type { MetricChange } from "../observe/metric-families.js";
import { importUnbundled } from "../optional-packages.js";
import { OutputChecker } from "../request/inference-response.js";
import {
  type ControlAsk,
  type JsModel,
  type JsModelArgs,
  type JsModelClass,
  type LogLine,
  modelControl,
  modelLogger,
  modelMetrics,
} from "./js-model.js";
import { resolveNow } from "./library-hooks.js";
import type { Callable } from "./run-callable.js";

export interface ModuleOptions {
  readonly module: string;
  readonly strict?: boolean | undefined;
  /** True if its requests run step by step, as a callback made with `stepwise` requires, and no other accepts. */
  readonly stepwise?: boolean | undefined;
  /** Directory of the model. @default the directory of the module */
  readonly directory?: string | undefined;
}

export interface ModuleHost {
  /** @param about further fields of the line: the requests that the model works on */
  log(line: LogLine, about?: LogSubject): void;
  changeMetrics(changes: readonly MetricChange[]): void;
  /** Handles a model's request to the server's repository. */
  control(ask: ControlAsk): Promise<unknown>;
}

export interface ImportedModel {
  readonly callable: Callable;
  /** Releases the model's resources, and logs failures; absent if the model defines no `finalize`. */
  readonly finalize: (() => Promise<void>) | undefined;
}

/**
 * Imports a user's module, creates an instance of its model and initializes it.
 *
 * @throws TritonError INVALID_ARG if the module exports no model; INTERNAL for errors of its constructor and
 * `initialize`, unless they are TritonErrors
 */
export async function importCallable(
  { module, strict, stepwise = false, directory }: ModuleOptions,
  info: InstanceInfo,
  host: ModuleHost,
): Promise<ImportedModel> {
  const { modelName, modelConfig } = info;
  const read = await readModule(module, modelName);
  const model = await stage(modelName, "constructor", () => read.create());
  const fn = callbackOf(model, modelName);
  if ((styleOf(fn) === "stepwise") !== stepwise) {
    const problem = stepwise ? STEPWISE_IS_MISSING : STEPWISE_IS_TOLD;
    throw errorFor("INVALID_MODEL", `model '${modelName}': ${problem}`);
  }
  const problems = callableProblems(fn, modelConfig);
  if (problems.length > 0) {
    throw errorFor("INVALID_MODEL", `model '${modelName}': ${problems.join("; ")}`);
  }
  await stage(modelName, "initialize", () =>
    model.initialize?.({
      modelName,
      modelVersion: info.modelVersion,
      modelConfig,
      instanceName: info.instanceName,
      instanceIndex: info.instanceIndex,
      device: info.device,
      modelDirectory: directory ?? dirname(fileURLToPath(module)),
      logger: modelLogger((line) => host.log(line)),
      metrics: modelMetrics((changes) => host.changeMetrics(changes)),
      models: modelControl((ask) => host.control(ask)),
    }),
  );
  return {
    callable: { fn, info, checker: new OutputChecker(modelConfig, strict) },
    finalize:
      model.finalize &&
      (async () => {
        try {
          await stage(modelName, "finalize", () => model.finalize?.());
        } catch (error) {
          host.log({ level: "error", message: TritonError.from(error).message });
        }
      }),
  };
}

/** `execute` of a model, with the marks that `batch`, `sample`, `stepwise` and decorators have set on it. */
function callbackOf(model: JsModel, modelName: string): AnyInferFunc {
  const { execute } = model;
  if (typeof execute !== "function") {
    throw errorFor(
      "INVALID_MODEL",
      `model '${modelName}': expected its class to have a method execute(requests, context), got ${typeof execute}`,
    );
  }
  const bound = execute.bind(model as never);
  rememberOriginal(bound, execute);
  for (const mark of Object.getOwnPropertySymbols(execute)) {
    Object.defineProperty(bound, mark, Object.getOwnPropertyDescriptor(execute, mark)!);
  }
  return bound as AnyInferFunc;
}

async function stage<T>(modelName: string, what: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const { code, message, reason } = TritonError.from(error);
    throw new TritonError(code, `model '${modelName}': ${what} failed: ${message}`, { reason, cause: error });
  }
}

/** Content of a module: how to create an instance of its model, and how to complete a configuration. */
interface JsModule {
  /** Creates an instance; `initialize` has not been called yet. */
  create(): JsModel;
  /** The callback, if it is known without creating an instance. */
  readonly callback: AnyInferFunc | undefined;
  readonly autoCompleteConfig: JsModelClass["autoCompleteConfig"];
}

interface CallbackExports extends Pick<JsModelClass, "autoCompleteConfig"> {
  initialize?(args: JsModelArgs): void | Promise<void>;
  finalize?(): void | Promise<void>;
}

/**
 * Imports a user's module. It exports a class (`TritonJsModel`, or the default export), or a callback as default, with
 * optional exports `initialize`, `finalize` and `autoCompleteConfig`.
 *
 * @param module URL of the module
 * @throws TritonError INVALID_ARG for a module with other exports, INTERNAL if it cannot be imported; errors that the
 * module itself throws
 */
export async function readModule(module: string, modelName: string): Promise<JsModule> {
  const exported = await importModule(module, modelName);
  const main = exported.TritonJsModel ?? exported.default;
  if (typeof main !== "function") {
    throw refused(
      modelName,
      `module ${module}: expected a callback as default export, or a class, got ${typeof main}`,
    );
  }
  if (isClass(main) || main === exported.TritonJsModel) return ofClass(main as JsModelClass);
  const { initialize, finalize, autoCompleteConfig } = exported as CallbackExports;
  const callback = main as AnyInferFunc;
  return {
    callback,
    create: () => ({
      execute: callback,
      ...(initialize === undefined ? {} : { initialize }),
      ...(finalize === undefined ? {} : { finalize }),
    }),
    autoCompleteConfig,
  };
}

function ofClass(Model: JsModelClass): JsModule {
  const { execute } = Model.prototype as Partial<JsModel>;
  return {
    callback: (execute ?? new Model().execute) as AnyInferFunc | undefined,
    create: () => new Model(),
    autoCompleteConfig: Model.autoCompleteConfig?.bind(Model),
  };
}

async function importModule(module: string, modelName: string): Promise<Record<string, unknown>> {
  try {
    const exported: Record<string, unknown> = await importUnbundled(module);
    // CommonJS: the exports are in the default export.
    const inner = exported.default as Record<string, unknown> | undefined;
    const isNested = typeof inner === "object" && inner !== null;
    return isNested && ("TritonJsModel" in inner || "default" in inner) ? { ...inner } : exported;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    const text = `model '${modelName}': cannot import the module ${module}: ${await whyNot(error, module)}`;
    throw new TritonError("INTERNAL", text, { cause: error });
  }
}

/** True for errors of the module loader, as opposed to errors of the module. */
function isOfNode(error: unknown): boolean {
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  return error instanceof SyntaxError || (typeof code === "string" && code.startsWith("ERR_"));
}

/** The message of an error; for an error of the module's code also its place. */
async function whyNot(error: unknown, module: string): Promise<string> {
  const { message } = TritonError.from(error);
  if (
    (error as NodeJS.ErrnoException | undefined)?.code === "ERR_UNKNOWN_FILE_EXTENSION" &&
    /\.m?ts$/.test(module)
  ) {
    return `${message}: Node ${process.version} does not strip types: compile the module to JavaScript, or use Node 22.18 or later`;
  }
  const place = placeInSource(error) ?? (await placeOfSyntaxError(error, module));
  if (error instanceof SyntaxError) {
    return place === undefined ? `SyntaxError: ${message}` : `SyntaxError at ${place}: ${message}`;
  }
  return isOfNode(error) || place === undefined ? message : `${message} (at ${place})`;
}

async function placeOfSyntaxError(error: unknown, module: string): Promise<string | undefined> {
  return error instanceof SyntaxError ? findSyntaxError({ module, message: error.message }) : undefined;
}

/** True for a class. Classes have no calling style of their own: `execute` of an instance does. */
function isClass(value: unknown): boolean {
  const { prototype } = value as { prototype?: Partial<JsModel> };
  return typeof prototype?.execute === "function" || /^class\b/.test(Function.prototype.toString.call(value));
}

function refused(modelName: string, text: string): TritonError {
  return errorFor("INVALID_MODEL", `model '${modelName}': ${text}`);
}

/**
 * The place of an error in the user's source, as `file:line:column`; undefined if its stack has none. The stack of a
 * syntax error begins with the file and the line, and a mark below the source shows the column:
 *
 * ```
 * file:///app/model.js:3
 *   const a = ;
 *             ^
 * ```
 */
function placeInSource(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined;
  const lines = error.stack.split("\n");
  if (error instanceof SyntaxError) {
    const [first = ""] = lines;
    if (!/:\d+$/.test(first)) return undefined;
    const mark = lines.findIndex((line) => /^\s*\^+\s*$/.test(line));
    return mark < 0 ? first : `${first}:${lines[mark]!.indexOf("^") + 1}`;
  }
  for (const line of lines) {
    const place = /^ {4}at (?:.*\()?((?:file:\/\/)?\/?.+:\d+:\d+)\)?$/.exec(line)?.[1];
    if (place !== undefined && !place.startsWith("node:")) return place;
  }
  return undefined;
}

export interface SyntaxCheck {
  readonly module: string;
  /** Message of the syntax error. */
  readonly message: string;
}

/**
 * Finds a syntax error in a module, or in the files that it imports by a path. It parses them and runs nothing.
 *
 * @returns the place as `file:line:column`; undefined if it is in another kind of file
 */
function findSyntaxError(check: SyntaxCheck): Promise<string | undefined> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL("./syntax-check-main.js", import.meta.url), {
      workerData: check,
      execArgv: ["--experimental-vm-modules", "--no-warnings"],
    });
    worker.once("message", resolve);
    worker.once("error", () => resolve(undefined));
    worker.once("exit", () => resolve(undefined));
  });
}

/** Synchronous hooks, which newer versions of Node have besides `register`. */
interface SynchronousHooks {
  registerHooks?(hooks: { readonly resolve: typeof resolveNow }): void;
}

/**
 * Lets a module without `@tritonjs/core` in a `node_modules` above it import the running copy, and that copy's
 * `@tritonjs/protocol`. For the library's own threads and processes, because it affects all their modules.
 *
 * @param module URL of the module
 */
export function resolveLibrary(module: string): void {
  if (finds(module)) return;
  const { registerHooks } = nodeModule as SynchronousHooks;
  if (registerHooks !== undefined) registerHooks({ resolve: resolveNow });
  else nodeModule.register?.(new URL("./library-hooks.js", import.meta.url));
}

/** Searches like Node does for packages of ES modules; `require` would also search NODE_PATH. */
function finds(module: string): boolean {
  if (!module.startsWith("file:")) return true;
  for (let path = fileURLToPath(module); path !== dirname(path); path = dirname(path)) {
    if (existsSync(join(dirname(path), "node_modules", "@tritonjs", "core", "package.json"))) return true;
  }
  return false;
}
