import { TritonError } from "@tritonjs/protocol";
import type { AnyInferFunc } from "../../callable/infer-func.js";
import { importUnbundled } from "../../unbundled.js";
import { findSyntaxError } from "./find-syntax-error.js";
import type { JsModel, JsModelArgs, JsModelClass } from "./js-model.js";
import { placeInSource } from "./place-in-source.js";

/** Content of a module: how to create an instance of its model, and how to complete a configuration. */
export interface JsModule {
  /** Creates an instance; `initialize` has not been called yet. */
  create(): JsModel;
  /** The callback, if it is known without creating an instance. */
  readonly callback: AnyInferFunc | undefined;
  readonly autoCompleteConfig: JsModelClass["autoCompleteConfig"];
}

/** Exports that a module may have besides its callback. */
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
  return new TritonError("INVALID_ARG", `model '${modelName}': ${text}`, { reason: "INVALID_MODEL" });
}
