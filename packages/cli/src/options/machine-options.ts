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

const noGpuMemory = { noEffect: "the providers of ONNX Runtime manage the memory of GPUs" };

/** Options of backends, cache, rate limiter and memory, and old names of options. */
export const machineOptions = {
  "Backend Settings": {
    "backend-config": list(
      "<backend>,<setting>=<value>",
      "Setting of a backend; without the name, of all backends. May be given several times.",
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
      '"execution_count" runs instances by priority when their resources are free. "off" runs them at once.',
      "off",
      readChoice<NonNullable<TritonOptions["rateLimit"]>>(
        { execution_count: true, off: true },
        "invalid argument for --rate-limit",
      ),
      { completes: ["execution_count", "off"] },
    ),
    "rate-limit-resource": list(
      "<resource>:<count>:<device>",
      "Available amount of a resource; without <device>, on each device. May be given several times.",
      readResource,
    ),
  },
  "Memory/Device Management": {
    "pinned-memory-pool-byte-size": value("integer", "Bytes of pinned memory.", 2 ** 28, readLong, {
      noEffect: "Node.js has no pinned memory",
    }),
    "cuda-memory-pool-byte-size": list(
      "<device>:<bytes>",
      "Bytes of the memory pool of a GPU.",
      readPair(readLong),
      noGpuMemory,
    ),
    "cuda-virtual-address-size": list(
      "<device>:<bytes>",
      "Bytes of address space for growing states on a GPU.",
      readPair(readLong),
      noGpuMemory,
    ),
    "min-supported-compute-capability": value(
      "number",
      "Lowest compute capability of GPUs to use.",
      0,
      readDouble,
      {
        noEffect: "the providers of ONNX Runtime choose the GPUs",
      },
    ),
    "buffer-manager-thread-count": integer("Number of threads that copy tensors.", 0, {
      noEffect: "tensors are passed on as views without a copy",
    }),
    "host-policy": list(
      "<policy>,<setting>=<value>",
      "Setting of a host policy: numa-node or cpu-cores. A warning shows how to apply it.",
      readHostPolicy,
    ),
    "model-load-gpu-limit": list(
      "<device>:<fraction>",
      "Largest used fraction of a GPU's memory at which models still load.",
      readPair(readDouble),
      noGpuMemory,
    ),
  },
  "Request Memory": {
    "request-memory-byte-size": integerFrom(
      0,
      "Bytes that all HTTP and gRPC requests together may take, received and unpacked. Further requests are refused. " +
        "0 stands for 1 GiB, or a quarter of the memory if that is less.",
      0,
    ),
    "max-decompressions": integerFrom(
      1,
      "Number of compressed requests that are unpacked at the same time.",
      2,
    ),
    "max-waiting-decompressions": integerFrom(
      0,
      "Number of compressed requests that may wait to be unpacked. Further ones are refused.",
      1024,
    ),
    "max-compression-ratio": integerFrom(
      0,
      "Largest ratio of unpacked to compressed bytes of a request that unpacks to more than 8 MiB; 0 for any.",
      100,
    ),
  },
  "Shared Memory": {
    "allow-client-shm": boolean("Allow clients to register regions of shared memory.", false),
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
