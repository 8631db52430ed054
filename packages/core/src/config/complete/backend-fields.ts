import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import { ENSEMBLE_PLATFORM } from "../validation/validate-ensemble.js";

/**
 * A kind of model file: its backend, its platform, its name, and whether that name belongs to a file or a directory.
 */
interface FileKind {
  readonly backend: string;
  readonly platform: string;
  readonly filename: string;
  readonly only?: "file" | "directory";
  /** True for the kind of a backend with several, when nothing tells which. */
  readonly usual?: true;
}

/** The kinds in Triton's order. The first one that matches decides. */
const FILE_KINDS: readonly FileKind[] = [
  { backend: "tensorflow", platform: "tensorflow_graphdef", filename: "model.graphdef", only: "file" },
  {
    backend: "tensorflow",
    platform: "tensorflow_savedmodel",
    filename: "model.savedmodel",
    only: "directory",
  },
  { backend: "tensorrt", platform: "tensorrt_plan", filename: "model.plan", only: "file" },
  { backend: "onnxruntime", platform: "onnxruntime_onnx", filename: "model.onnx" },
  { backend: "openvino", platform: "", filename: "model.xml" },
  { backend: "pytorch", platform: "pytorch_libtorch", filename: "model.pt", only: "file", usual: true },
  { backend: "pytorch", platform: "libtorch", filename: "model.pt", only: "file" },
  { backend: "pytorch", platform: "torch_aoti", filename: "model.pt2", only: "file" },
  { backend: "python", platform: "", filename: "model.py" },
  // Kinds of this library, which Triton does not have.
  { backend: "tensorflow", platform: "tensorflow_tfjs", filename: "model.json", only: "file" },
  { backend: "javascript", platform: "", filename: "model.js", only: "file" },
  { backend: "javascript", platform: "", filename: "model.mjs", only: "file" },
  { backend: "javascript", platform: "", filename: "model.ts", only: "file" },
];

/**
 * Fills `backend`, `platform` and `default_model_filename` from each other, from the names of the files in the first
 * version directory, or from a model name of the form `model.<backend>`.
 *
 * @param files names in the version directory; names of directories may end in `/`
 * @throws TritonError INVALID_ARG when the backend of the model cannot be determined
 */
export function fillBackendFields(config: ModelConfig, files: readonly string[]): ModelConfig {
  const { backend, platform, defaultModelFilename, name } = config;
  const isNothingSaid = backend === "" && platform === "" && defaultModelFilename === "";
  const kind =
    backend === ""
      ? FILE_KINDS.find((candidate) => tells(candidate, config, files))
      : kindOfBackend(config, files);
  if (kind !== undefined) {
    // The program of a backend decides which of a model's files it reads.
    const filename = config.runtime.endsWith(".py") ? "" : kind.filename;
    return {
      ...config,
      backend: kind.backend,
      platform: platform || kind.platform,
      defaultModelFilename: defaultModelFilename || filename,
    };
  }
  if (!isNothingSaid) return config;
  const dot = name.indexOf(".");
  if (dot < 0) {
    throw new TritonError(
      "INVALID_ARG",
      `Invalid model name: Could not determine backend for model '${name}' with no backend in model configuration. ` +
        "Expected model name of the form 'model.<backend_name>'.",
      { reason: "INVALID_CONFIG" },
    );
  }
  const named = name.slice(dot + 1);
  return { ...config, backend: named, defaultModelFilename: `model.${named}` };
}

function tells(kind: FileKind, config: ModelConfig, files: readonly string[]): boolean {
  const { platform, defaultModelFilename } = config;
  if (platform !== "" && platform === kind.platform) return true;
  if (defaultModelFilename !== "") return defaultModelFilename === kind.filename;
  return platform === "" && isThere(kind, files);
}

function kindOfBackend(config: ModelConfig, files: readonly string[]): FileKind | undefined {
  const kinds = FILE_KINDS.filter(({ backend }) => backend === config.backend);
  // Only some backends have more than one kind of file.
  if (kinds.length < 2) return kinds[0];
  return kinds.find((kind) => tells(kind, config, files)) ?? kinds.find(({ usual }) => usual);
}

function isThere({ filename, only }: FileKind, files: readonly string[]): boolean {
  const isFile = files.includes(filename);
  const isDirectory = files.includes(`${filename}/`);
  return isFile || (isDirectory && only !== "file");
}

/** Lists problems with the backend and the platform of a configuration, with Triton's texts. */
export function backendProblems({ name, backend, platform }: ModelConfig): string[] {
  if (backend === "" && platform !== ENSEMBLE_PLATFORM) {
    return [`unexpected platform type '${platform}' for ${name}`];
  }
  const platforms = FILE_KINDS.filter((kind) => kind.backend === backend && kind.platform !== "");
  // A backend unknown to Triton accepts any platform. Problems of an ensemble are reported elsewhere.
  return platforms.length === 0 ||
    platform === ENSEMBLE_PLATFORM ||
    platforms.some((kind) => kind.platform === platform)
    ? []
    : [`unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`];
}
