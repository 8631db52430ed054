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
  protocol: { packedKilobytes: 60, unpackedKilobytes: 220, dependencies: 2 },
  // The engine `native`, tensor memory of Python processes and shared ports added 30 KB.
  core: { packedKilobytes: 540, unpackedKilobytes: 1_900, dependencies: 5 },
  // Reading and writing long JSON in turns of the event loop, and the rules on hosts and pages, added 12 KB.
  http: { packedKilobytes: 80, unpackedKilobytes: 270, dependencies: 1 },
  // Most of it is the generated code of the protocol's messages. It has the runtime of protobufjs in it.
  "grpc-messages": { packedKilobytes: 125, unpackedKilobytes: 1_250, dependencies: 0 },
  grpc: { packedKilobytes: 55, unpackedKilobytes: 200, dependencies: 3 },
  client: { packedKilobytes: 75, unpackedKilobytes: 320, dependencies: 4 },
  opentelemetry: { packedKilobytes: 20, unpackedKilobytes: 60, dependencies: 2 },
  // Most of it is the page.
  dashboard: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 4 },
  "text-generation": { packedKilobytes: 90, unpackedKilobytes: 320, dependencies: 3 },
  openai: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 3 },
  trees: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 1 },
  media: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 1 },
  "frontend-threads": { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 1 },
  cloud: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 2 },
  tools: { packedKilobytes: 220, unpackedKilobytes: 750, dependencies: 6 },
  // Four of them are packages of backends, for models that name one.
  cli: { packedKilobytes: 60, unpackedKilobytes: 200, dependencies: 14 },
};

/** Files that an application gets with core alone. */
export const CORE_INSTALLED = { megabytes: 20, packages: 12 };

/** `@tritonjs/client/http` as one file for a browser, with all that it needs. docs/client.md states these numbers. */
export const HTTP_CLIENT_BUNDLE = { minifiedKilobytes: 63, gzippedKilobytes: 21 };
