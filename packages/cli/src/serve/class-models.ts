import { readFileSync, rmSync, statSync } from "node:fs";
import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import type { parseClassReference as ParseClassReference } from "@tritonjs/backends/classes";
import { importInstalled } from "@tritonjs/core/internal";
import { cleanUpAtExit } from "@tritonjs/perf/internal";
import { errorFor } from "@tritonjs/protocol";
import type { ModelFormat } from "@tritonjs/repository";
import { OptionError } from "../options/option.js";
import type { OptionValues } from "../options/options.js";

/** The repositories that the command line names. */
export function repositoryPaths(values: OptionValues): string[] {
  return [...new Set([...values["model-store"], ...values["model-repository"]])];
}

interface ClassesPackage {
  readonly modelSettings: () => ModelFormat;
  readonly parseClassReference: typeof ParseClassReference;
}

/** File of a model of MLServer. */
const SETTINGS = "model-settings.json";

/** Parts that `--model` adds to a server: the format of the models, and a repository of them. */
export interface ClassModels {
  readonly modelFormats: readonly ModelFormat[];
  /** Directory of the models of `--model`, which is removed when the process ends. Undefined without any. */
  readonly repository: string | undefined;
}

/**
 * The models that `--model` names, as a repository. Each has a `model-settings.json` that names its class or its folder,
 * so that it is loaded, described and reported as other models are.
 *
 * @param given values of `--model`: `[name=]module.js#Class`, `[name=]module.py#Class`, or a folder of MLServer
 * @throws OptionError for a value of another form, and for two models of a name
 */
export async function classModels(given: readonly string[]): Promise<ClassModels> {
  // The package is loaded when a model needs it.
  let format: Promise<ModelFormat> | undefined;
  const lazy: ModelFormat = {
    file: SETTINGS,
    async layOut(model) {
      format ??= loadClasses().then(({ modelSettings }) => modelSettings());
      return (await format).layOut(model);
    },
    async close() {
      await (await format)?.close?.();
    },
  };
  if (given.length === 0) return { modelFormats: [lazy], repository: undefined };
  const { parseClassReference } = await loadClasses();
  const models = new Map<string, object>();
  for (const text of given) {
    const { name, settings } = readModel(text, parseClassReference);
    if (models.has(name))
      throw invalid(`two models have the name '${name}': give one of them another, <name>=${text}`);
    models.set(name, settings);
  }
  const repository = await realpath(await mkdtemp(join(tmpdir(), "tritonjs-serve-")));
  cleanUpAtExit(() => rmSync(repository, { recursive: true, force: true }));
  for (const [name, settings] of models) {
    await mkdir(join(repository, name));
    await writeFile(join(repository, name, SETTINGS), JSON.stringify(settings));
  }
  return { modelFormats: [lazy], repository };
}

async function loadClasses(): Promise<ClassesPackage> {
  const classes = await importInstalled<ClassesPackage>("@tritonjs/backends/classes");
  if (classes !== undefined) return classes;
  throw errorFor(
    "PACKAGE_NOT_INSTALLED",
    "a model of a class needs a package: npm install @tritonjs/backends",
  );
}

function readModel(text: string, parse: typeof ParseClassReference): { name: string; settings: object } {
  const [, given, value = text] = /^([\w.-]+)=(.+)$/.exec(text) ?? [];
  const reference = parse(value);
  if (reference !== undefined) {
    const { module, className } = reference;
    const name = given ?? className;
    return { name, settings: { name, implementation: `${resolve(module)}#${className}` } };
  }
  const folder = resolve(value);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw invalid(
      `expected <module.js>#<Class>, <module.py>#<Class> or a folder with a ${SETTINGS}, got '${text}'`,
    );
  }
  return { name: given ?? nameIn(folder), settings: { folder } };
}

/** The name in the settings of a folder. Without one that can be read, that of the folder: its load reports the fault. */
function nameIn(folder: string): string {
  try {
    const { name } = JSON.parse(readFileSync(join(folder, SETTINGS), "utf8")) as { name?: unknown };
    if (typeof name === "string" && /^[\w.-]+$/.test(name) && !/^\.+$/.test(name)) return name;
  } catch {
    // As below.
  }
  return basename(folder);
}

function invalid(text: string): OptionError {
  return new OptionError(`Error: --model: ${text}`);
}
