import type { TritonOptions } from "@tritonjs/core";
import { boolean, integer, integerFrom, list, text, value } from "./option.js";
import {
  readBackendSetting,
  readCacheSetting,
  readHostPolicy,
  readPair,
  readResource,
} from "./read-setting.js";
import { readBoolean, readChoice, readDouble, readLong } from "./read-value.js";

const noGpuMemory = { noEffect: "memory of GPUs belongs to the providers of ONNX Runtime" };

/** Options of backends, cache, rate limiter and memory, and old names of options. */
export const machineOptions = {
  "Backend Settings": {
    "backend-config": list(
      "<backend>,<setting>=<value>",
      "Setting of a backend, or of all without the name. May be given several times.",
      readBackendSetting,
    ),
  },
  "Response Cache": {
    "cache-config": list(
      "<cache>,<setting>=<value>",
      "Setting of the response cache: local,size=<bytes>. May be given several times.",
      readCacheSetting,
    ),
    "cache-directory": text("Directory of shared libraries of caches.", "", {
      noEffect: "caches are JavaScript modules, not shared libraries",
    }),
  },
  "Rate Limiter": {
    "rate-limit": value(
      "string",
      '"execution_count": instances run by priority, when their resources are free. "off": at once.',
      "off",
      readChoice<NonNullable<TritonOptions["rateLimit"]>>(
        { execution_count: true, off: true },
        "invalid argument for --rate-limit",
      ),
    ),
    "rate-limit-resource": list(
      "<resource>:<count>:<device>",
      "How much of a resource there is, on each device or on one. May be given several times.",
      readResource,
    ),
  },
  "Memory/Device Management": {
    "pinned-memory-pool-byte-size": value("integer", "Bytes of pinned memory.", 2 ** 28, readLong, {
      noEffect: "there is no pinned memory in Node.js",
    }),
    "cuda-memory-pool-byte-size": list(
      "<device>:<bytes>",
      "Memory pool of a GPU.",
      readPair(readLong),
      noGpuMemory,
    ),
    "cuda-virtual-address-size": list(
      "<device>:<bytes>",
      "Address space for growing states on a GPU.",
      readPair(readLong),
      noGpuMemory,
    ),
    "min-supported-compute-capability": value("number", "Oldest GPUs to use.", 0, readDouble, {
      noEffect: "the providers of ONNX Runtime choose the GPUs that they can use",
    }),
    "buffer-manager-thread-count": integer("Threads that copy tensors.", 0, {
      noEffect: "tensors are passed on as views, not copied by threads",
    }),
    "host-policy": list(
      "<policy>,<setting>=<value>",
      "Setting of a host policy: numa-node or cpu-cores. A warning says how to have them.",
      readHostPolicy,
    ),
    "model-load-gpu-limit": list(
      "<device>:<fraction>",
      "How full the memory of a GPU may be for a model to be loaded.",
      readPair(readDouble),
      noGpuMemory,
    ),
  },
  "Request Memory": {
    "request-memory-byte-size": integerFrom(
      0,
      "Bytes that all requests together may take over HTTP and gRPC, as received and as unpacked; 0 for 1 GiB, or a quarter " +
        "of the memory if that is less. More requests are refused.",
      0,
    ),
    "max-decompressions": integerFrom(1, "Compressed requests that are unpacked at the same time.", 2),
    "max-waiting-decompressions": integerFrom(
      0,
      "Compressed requests that may wait to be unpacked. More are refused.",
      1024,
    ),
    "max-compression-ratio": integerFrom(
      0,
      "Largest ratio of unpacked to compressed bytes of a request that unpacks to more than 8 MiB; 0 for any.",
      100,
    ),
  },
  "Shared Memory": {
    "allow-client-shm": boolean("Let clients register regions of shared memory.", false),
  },
  DEPRECATED: {
    "strict-model-config": {
      ...value<boolean | undefined>("boolean", "Use --disable-auto-complete-config.", undefined, readBoolean),
      deprecated: () =>
        "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
    },
    "response-cache-byte-size": {
      ...value<number | undefined>("integer", "Use --cache-config.", undefined, readLong),
      deprecated: (size: string) =>
        "Warning: '--response-cache-byte-size' has been deprecated! This will default to the 'local' cache " +
        "implementation with the provided byte size for its config. Please use '--cache-config' instead. The " +
        `equivalent --cache-config CLI args would be: '--cache-config=local,size=${readLong(size)}'`,
    },
  },
};
