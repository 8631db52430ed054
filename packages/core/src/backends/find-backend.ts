import { join, normalize } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { isInside } from "../files/path-containment.js";
import type { BackendFactory } from "../instance/backend.js";
import { importInstalled } from "../unbundled.js";
import { type BackendProgram, findProgram, hasSharedLibrary, isProgram } from "./backend-directory.js";
import {
  BUILT_IN,
  BY_PLATFORM,
  CONVERSIONS,
  PACKAGED,
  RUN_BY,
  WITH_PYTHON_RUNTIME,
} from "./backend-table.js";
import { configWithProgram, sharedProgram } from "./shared-program.js";

/** A version of a model whose backend is wanted. */
export interface BackendUser {
  readonly config: ModelConfig;
  /** Directory of the model. */
  readonly directory: string;
  readonly version: number;
}

/** Places that are searched for backends, besides the tables of the library. */
export interface BackendPlaces {
  /** Backends that the program registered; they come before those of the library. */
  readonly backends: Readonly<Record<string, BackendFactory>>;
  /** Directory of backends that are programs. They come after those of the library, unless `runtime` names them. */
  readonly backendDirectory: string | undefined;
}

/** The backend of a model. */
export interface FoundBackend {
  readonly factory: BackendFactory;
  /** The model's configuration, with the additions of the backend. */
  readonly config: ModelConfig;
  /** Another backend whose settings this one has too. */
  readonly inherits?: string | undefined;
}

/** A package of `PACKAGED`. */
interface BackendPackage {
  readonly repositoryBackends: Readonly<Record<string, BackendFactory>>;
}

/**
 * Finds the backend of a model: by `backend`, or by `platform` in Triton's words; and by `runtime`, which may require a
 * program of the backend directory.
 *
 * @throws TritonError INVALID_ARG for an unknown backend; the text says how to convert the model where that is
 * possible.
 */
export async function findBackend(user: BackendUser, places: BackendPlaces): Promise<FoundBackend> {
  const { config } = user;
  const { backend, platform, runtime } = config;
  const name = backend !== "" ? backend : (BY_PLATFORM[platform] ?? platform);
  const root = places.backendDirectory;
  if (isProgram(runtime)) {
    const program = root === undefined ? undefined : await findProgram(root, name, runtime);
    if (program !== undefined) return fromProgram(name, config, program);
    if (runtime !== "model.py" || !WITH_PYTHON_RUNTIME.includes(name)) throw noProgram(name, user, root);
  } else if (runtime !== "" && runtime !== `libtriton_${name}.so`) {
    throw noLibrary(name, user, root);
  }
  const factory = own(places.backends, name) ?? own(BUILT_IN, name) ?? packaged(name);
  if (factory !== undefined) return { factory, config, inherits: own(RUN_BY, name) };
  if (runtime !== "") throw noLibrary(name, user, root);
  const program = root === undefined ? undefined : await findProgram(root, name, "");
  if (program !== undefined) return fromProgram(name, config, program);
  throw unknown(name, root !== undefined && (await hasSharedLibrary(root, name)));
}

async function fromProgram(
  name: string,
  config: ModelConfig,
  program: BackendProgram,
): Promise<FoundBackend> {
  return {
    factory: sharedProgram(name, program),
    config: await configWithProgram(config, program),
    inherits: program.language,
  };
}

function packaged(name: string): BackendFactory | undefined {
  const packageName = own(PACKAGED, name);
  if (packageName === undefined) return undefined;
  return async (source) => {
    const found = await importInstalled<BackendPackage>(packageName);
    if (found !== undefined) return found.repositoryBackends[name]!(source);
    throw new TritonError(
      "UNAVAILABLE",
      `the backend '${name}' of model '${source.name}' needs a package: install ${packageName}`,
      { reason: "PACKAGE_NOT_INSTALLED" },
    );
  };
}

function unknown(name: string, isLibrary: boolean): TritonError {
  const conversion = own(CONVERSIONS, name);
  const hint =
    conversion !== undefined
      ? ` There is none for '${name}' here: ${conversion}.`
      : isLibrary
        ? ` 'libtriton_${name}.so' is a shared library for tritonserver, which cannot be loaded here: write the backend as ` +
          "model.py or backend.js, or register it with new Triton({ backends })."
        : "";
  return invalid(
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.${hint}`,
  );
}

/** The error for a program that `runtime` names and the backend directory does not have. */
function noProgram(name: string, { config }: BackendUser, root: string | undefined): TritonError {
  const { runtime } = config;
  const language = runtime === "model.py" ? "Python" : "JavaScript";
  const start = `unable to find ${language} backend based backend library '${runtime}' for model '${config.name}'`;
  return invalid(
    root === undefined
      ? `${start}: there is no backend directory; set backendDirectory (--backend-directory)`
      : `${start}, searched: '${join(root, name, runtime)}'`,
  );
}

/** The error for a shared library that `runtime` names. */
function noLibrary(name: string, { config, directory, version }: BackendUser, root = ""): TritonError {
  const { runtime } = config;
  const places = [join(directory, String(version)), directory, ...(root === "" ? [] : [join(root, name)])];
  if (!isInside("/backend", join("/backend", normalize(runtime)))) {
    return invalid(
      `backend library name '${runtime}' escapes backend directory '${places.at(-1)}', for model '${config.name}', check ` +
        "model config runtime field",
    );
  }
  const searched = places.map((place) => `'${place}' `).join("");
  return invalid(
    `unable to find backend library '${runtime}' for model '${config.name}', searched: ${searched}`,
  );
}

function invalid(text: string): TritonError {
  return new TritonError("INVALID_ARG", text, { reason: "INVALID_CONFIG" });
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
