import { totalmem } from "node:os";
import { definedMembers, TritonError } from "@tritonjs/protocol";
import { checkOptionNames } from "../config/schema/check-option-names.js";

/** Limits on the memory of all requests that frontends receive. */
export interface RequestMemoryOptions {
  /**
   * Bytes that all requests together may take, received and unpacked. Each counts from its first byte to its answer. A
   * request that does not fit is refused with UNAVAILABLE. A request that is alone may take as much as its frontend
   * allows.
   * @default 1 GiB, or a quarter of the memory of this machine or container if that is less
   */
  readonly byteSize?: number;
  /** Compressed requests that are unpacked at the same time; others wait in order. @default 2 */
  readonly maxDecompressions?: number;
  /** Compressed requests that may wait to be unpacked. Further requests are refused with UNAVAILABLE. @default 1024 */
  readonly maxWaitingDecompressions?: number;
  /**
   * Largest ratio of unpacked to compressed bytes of a request that unpacks to more than 8 MiB; 0 for any.
   * @default 100
   */
  readonly maxCompressionRatio?: number;
}

const GIBIBYTE = 2 ** 30;

/** The default of each option. */
export const REQUEST_MEMORY_DEFAULTS: Required<RequestMemoryOptions> = {
  /**
   * Sixteen requests of the largest size that frontends take by default. Three quarters of the memory remain for
   * models, tensors of batches and answers.
   */
  byteSize: Math.min(GIBIBYTE, Math.floor(availableMemory() / 4)),
  /** Half of the thread pool of Node.js, which also reads files and resolves host names. */
  maxDecompressions: 2,
  /** The number of clients in a load test. A request of 8 MiB takes some 30 ms, so the last one waits for 15 s. */
  maxWaitingDecompressions: 1024,
  /** Envoy's `max_inflate_ratio`. Tensors of images and texts unpack to at most twenty times their size. */
  maxCompressionRatio: 100,
};

/**
 * Fills in the defaults.
 *
 * @throws TritonError INVALID_ARG for an unknown option, and for a number that an option cannot have.
 */
export function resolveRequestMemory(options: RequestMemoryOptions = {}): Required<RequestMemoryOptions> {
  checkOptionNames("requestMemory", options, Object.keys(REQUEST_MEMORY_DEFAULTS));
  const resolved = { ...REQUEST_MEMORY_DEFAULTS, ...definedMembers(options) };
  check("byteSize", resolved.byteSize, 1);
  check("maxDecompressions", resolved.maxDecompressions, 1);
  check("maxWaitingDecompressions", resolved.maxWaitingDecompressions, 0);
  check("maxCompressionRatio", resolved.maxCompressionRatio, 0);
  return resolved;
}

function check(name: keyof RequestMemoryOptions, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new TritonError(
    "INVALID_ARG",
    `requestMemory.${name}: expected an integer of at least ${least}, got ${value}`,
    { reason: "INVALID_OPTION" },
  );
}

/** Bytes of memory of the machine, or of the container that the process runs in. */
function availableMemory(): number {
  const container = process.constrainedMemory() ?? 0;
  return container > 0 ? Math.min(container, totalmem()) : totalmem();
}
