import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Logger, Triton } from "@tritonjs/core";
import { invalidOption } from "../tool-errors.js";

/** What runs models in this process. */
export type InProcessSource =
  | {
      readonly repository: string;
      /** Models that are loaded beside the measured one and the steps of an ensemble. @default none */
      readonly calledModels?: readonly string[];
    }
  /** Path of a module that exports a `Triton` as `default` or `triton`. */
  | { readonly module: string };

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
      ? new Triton({
          modelRepository: source.repository,
          modelControlMode: "explicit",
          loadModel: [model, ...(source.calledModels ?? [])],
          logger: log,
        })
      : await importTriton(resolve(source.module));
  try {
    await triton.ready();
  } catch (error) {
    if (!triton.service.isModelReady(model, "")) {
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

async function importTriton(path: string): Promise<Triton> {
  if (!existsSync(path)) throw invalidOption(`--module: expected a file, '${path}' does not exist`);
  const exported = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  const triton = [exported.triton, exported.default].find(isTriton);
  if (triton !== undefined) return triton;
  const names = Object.keys(exported).join(", ") || "no exports";
  throw invalidOption(
    `--module: expected '${path}' to export a Triton as 'triton' or as default, got ${names}`,
  );
}

/** The module may use another copy of the package, so its class does not tell. */
function isTriton(value: unknown): value is Triton {
  return (
    typeof value === "object" && value !== null && "service" in value && "ready" in value && "close" in value
  );
}
