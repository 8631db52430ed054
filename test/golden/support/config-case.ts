import { completeConfig, type ModelConfig, prepareConfig, readPrototxt, TritonError } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/core/onnxruntime";
import { completeLikePython } from "./python-auto-complete.js";

/** One model that was loaded by the recorded server: its files, and what came of it. */
export interface ConfigCase {
  readonly id: string;
  readonly server_flags?: readonly string[];
  /** By path in the model's directory; a path that ends in `/` is an empty directory. */
  readonly files: Readonly<Record<string, string | { readonly base64: string }>>;
  readonly load?: { readonly status: number };
  readonly index?: readonly { readonly name: string; readonly reason?: string }[];
  readonly config?: unknown;
  readonly log?: readonly string[];
}

/** What the library makes of the files: a configuration, or the stage that refuses it and its words. */
export type ConfigOutcome =
  | { readonly config: ModelConfig }
  | { readonly stage: "poll" | "create"; readonly text: string };

/** Reads, completes and checks the configuration of a recorded model. */
export function configOutcome(recorded: ConfigCase): ConfigOutcome {
  const name = recorded.index?.[0]?.name ?? "m";
  const flags = recorded.server_flags ?? [];
  const autoComplete = !flags.includes("--disable-auto-complete-config");
  const size = flags
    .find((flag) => flag.includes("default-max-batch-size="))
    ?.split("=")
    .at(-1);
  let stage: "poll" | "create" = "poll";
  try {
    const written = writtenConfig(recorded, flags);
    const prepared = prepareConfig(written, {
      modelName: name,
      versionFiles: firstVersionFiles(recorded),
      autoComplete,
    });
    stage = "create";
    return {
      config: completeConfig(prepared, describe(recorded, prepared, autoComplete), {
        autoComplete,
        gpus: { numbers: undefined },
        isWritten: written !== undefined,
        ...(size === undefined ? {} : { defaultMaxBatchSize: Number(size) }),
      }),
    };
  } catch (error) {
    if (!TritonError.is(error)) throw error;
    return { stage, text: `${statusWord(error)}: ${error.message}` };
  }
}

function writtenConfig({ files }: ConfigCase, flags: readonly string[]): ModelConfig | undefined {
  const named = flags.find((flag) => flag.startsWith("--model-config-name="))?.split("=")[1];
  const text = files[`configs/${named}.pbtxt`] ?? files["config.pbtxt"];
  return text === undefined ? undefined : readPrototxt(bytesOf(text));
}

function bytesOf(file: string | { readonly base64: string }): string | Uint8Array {
  return typeof file === "string" ? file : Buffer.from(file.base64, "base64");
}

function firstVersionFiles({ files }: ConfigCase): string[] {
  const paths = Object.keys(files);
  const first = paths
    .filter((path) => path.includes("/"))
    .map((path) => path.split("/")[0]!)
    .sort()[0];
  return paths.filter((path) => path.startsWith(`${first}/`)).map((path) => path.slice(`${first}/`.length));
}

function describe({ files }: ConfigCase, prepared: ModelConfig, autoComplete: boolean) {
  const versions = Object.keys(files)
    .filter((path) => path.endsWith(`/${prepared.defaultModelFilename}`))
    .sort();
  const file = files[versions.at(-1) ?? ""];
  if (file === undefined) return undefined;
  if (prepared.backend === "onnxruntime") {
    return onnxruntime({ model: Buffer.from((file as { base64: string }).base64, "base64") }).describe();
  }
  return autoComplete ? completeLikePython(prepared, String(file)) : undefined;
}

const WORDS: Readonly<Record<string, string>> = {
  INVALID_ARG: "Invalid argument",
  INTERNAL: "Internal",
  NOT_FOUND: "Not found",
};

/** Triton's word for the code of an error, as it stands before the texts of the index. */
function statusWord({ code }: TritonError): string {
  return WORDS[code] ?? code;
}
