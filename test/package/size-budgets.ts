import type { PackageName } from "./packed-packages.js";

/** Size budget of a package. A change that needs more says here how much, and its reviewer says why. */
export interface SizeBudget {
  /** Kilobytes of the tarball, which is downloaded. */
  readonly packedKilobytes: number;
  /** Kilobytes of its files on disk. */
  readonly unpackedKilobytes: number;
  /** Direct dependencies, without those that an application installs beside it. */
  readonly dependencies: number;
}

export const SIZE_BUDGETS: Readonly<Record<PackageName, SizeBudget>> = {
  // Most of it is the generated code of the protocol's messages. It has the runtime of protobufjs in it.
  // The message ModelConfig field by field, with its defaults and its JSON form, is 6 kB, on a subpath for servers.
  protocol: { packedKilobytes: 180, unpackedKilobytes: 1_420, dependencies: 2 },
  core: { packedKilobytes: 310, unpackedKilobytes: 1_180, dependencies: 5 },
  server: { packedKilobytes: 75, unpackedKilobytes: 260, dependencies: 3 },
  testing: { packedKilobytes: 20, unpackedKilobytes: 70, dependencies: 1 },
  scheduling: { packedKilobytes: 40, unpackedKilobytes: 150, dependencies: 1 },
  repository: { packedKilobytes: 80, unpackedKilobytes: 285, dependencies: 1 },
  operations: { packedKilobytes: 120, unpackedKilobytes: 500, dependencies: 1 },
  // A third of it is the load generator with its carriers. Four of the dependencies are our packages.
  perf: { packedKilobytes: 205, unpackedKilobytes: 725, dependencies: 10 },
  // With the C interface of ONNX Runtime, all its providers, the doctor and the memory for GPUs, and the WebAssembly of trees and filter banks.
  // A quarter of it makes forms of models, with the runtime of protobuf messages: `optimize` and SavedModels load it.
  // Reading models of scikit-learn and PyTorch is 48 kB of it, half of that two scripts in Python.
  // Finding class names in ONNX files is 10 kB. What asks CUDA and NVML, which core had, is 9 kB packed.
  // Web workers as instances, and the thread that describes models, came from core too: 5 kB packed.
  backends: { packedKilobytes: 397, unpackedKilobytes: 1_430, dependencies: 1 },
  // ONNX Runtime as WebAssembly.
  "onnxruntime-wasm": { packedKilobytes: 4_200, unpackedKilobytes: 14_500, dependencies: 1 },
  // A third of it is the dashboard and its page, with the 80 kB of its libraries that browsers load, and 9 kB that read
  // recordings of the scheduling there.
  http: { packedKilobytes: 148, unpackedKilobytes: 464, dependencies: 2 },
  grpc: { packedKilobytes: 46, unpackedKilobytes: 170, dependencies: 3 },
  // The types of served models and recordings are 17 kB of it, `hybrid` is 7 kB.
  client: { packedKilobytes: 58, unpackedKilobytes: 229, dependencies: 3 },
  // A quarter of it reads what models write and want: forms of tool calls, chat templates, tokenizers of SentencePiece.
  // Grammars of structured texts are 33 kB with their thread and its budget, prefixes on disk 8 kB, the semantic cache 6 kB.
  llm: { packedKilobytes: 252, unpackedKilobytes: 915, dependencies: 7 },
  // Adding models to repositories is 50 kB of it. All dependencies but one are our packages, which the command loads when
  // it uses them.
  cli: { packedKilobytes: 89, unpackedKilobytes: 304, dependencies: 14 },
};

/** Files that an application gets with core alone. */
export const CORE_INSTALLED = { megabytes: 20, packages: 12 };

/** Files of an application that serves ONNX models over HTTP, by WebAssembly. docs/installing.md has the parts. */
export const ONNX_INSTALLED = { megabytes: 28, packages: 17 };

/**
 * `@tritonjs/client/http` as one file for a browser, with all that it needs. docs/client.md states these numbers. The check
 * of options by name and type takes 3.3 kB of it, 1.2 kB with gzip. Streams and classes of a model, and the client of all
 * models, take 3.7 kB, which a page that does not use them leaves out. Arrays of FP16 and BF16 take 2.2 kB.
 */
export const HTTP_CLIENT_BUNDLE = { minifiedKilobytes: 75.9, gzippedKilobytes: 25.4 };

/** `@tritonjs/core/web` as one file for a browser, with all that it needs. docs/web.md states the number. */
export const WEB_CORE_BUNDLE = { minifiedKilobytes: 334, gzippedKilobytes: 110 };
