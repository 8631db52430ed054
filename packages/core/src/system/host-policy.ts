import { readFileSync } from "node:fs";
import { TritonError } from "@tritonjs/protocol";
import { type Koffi, requireKoffi } from "../optional-packages.js";

/**
 * Settings of Triton's `--host-policy` for the workers and processes of instances. Callbacks on the event loop run as
 * the program does.
 */
export interface HostPolicy {
  /** Priority of the instance's process: 1 to 19 for less than others. For isolation `process` only. @default 0 */
  readonly nice?: number;
  /** Triton's `numa-node`: the node whose memory the instance gets. Linux only; needs the package `koffi`. */
  readonly numaNode?: number | string;
  /** Triton's `cpu-cores`: the cores on which it runs, as `0-3,8-11`. Linux only; needs the package `koffi`. */
  readonly cpuCores?: string;
}

/** Host policies by name. */
export type HostPolicies = Readonly<Record<string, HostPolicy>>;

/** True if the policy places its instances on cores or memory. */
export function isPlaced(policy: HostPolicy | undefined): boolean {
  return policy?.numaNode !== undefined || policy?.cpuCores !== undefined;
}

/** Lists settings of the policies that cannot be applied here, one per line, each with an alternative. */
export function hostPolicyWarnings(policies: HostPolicies): string[] {
  const obstacle = Object.values(policies).some(isPlaced) ? obstacleHere() : undefined;
  if (obstacle === undefined) return [];
  return Object.entries(policies).flatMap(([name, { numaNode, cpuCores }]) => {
    const settings = [
      ...(numaNode === undefined ? [] : ["numa-node"]),
      ...(cpuCores === undefined ? [] : ["cpu-cores"]),
    ];
    return settings.map((setting) => `host policy '${name}': ${setting} is not applied: ${obstacle}`);
  });
}

function obstacleHere(): string | undefined {
  if (process.platform !== "linux") {
    return `expected Linux, got ${process.platform}; remove the setting`;
  }
  if (SET_MEMORY_POLICY[process.arch] === undefined) {
    return `expected a processor of ${Object.keys(SET_MEMORY_POLICY).join(" or ")}, got ${process.arch}`;
  }
  try {
    requireKoffi();
    return undefined;
  } catch {
    return "it needs the package koffi: npm install koffi, or start the program under 'taskset' or 'numactl'";
  }
}

/**
 * Binds the calling thread to the cores and memory of a policy. Threads and processes that it starts later inherit this.
 *
 * @throws TritonError INVALID_ARG for a setting that cannot be read, INTERNAL when the system refuses it, both in
 * Triton's words
 */
export function bindThread({ cpuCores, numaNode }: HostPolicy): void {
  if (obstacleHere() !== undefined) return;
  const system = new System(requireKoffi());
  if (cpuCores !== undefined) system.setCores(cpuCores);
  if (numaNode !== undefined) system.setNode(numaNode);
}

/**
 * Starts a process that is bound as the policy says: this thread is bound while it starts the process, which inherits
 * the binding from its first instruction on.
 *
 * @throws what {@link bindThread} throws
 */
export function startBound<T>(policy: HostPolicy | undefined, start: () => T): T {
  if (policy === undefined || !isPlaced(policy) || obstacleHere() !== undefined) return start();
  const system = new System(requireKoffi());
  const restore = system.remember();
  try {
    bindThread(policy);
    return start();
  } finally {
    restore();
  }
}

/** Numbers of the system call `set_mempolicy` by processor; `get_mempolicy` is its neighbour. */
const SET_MEMORY_POLICY: Readonly<Record<string, number>> = { x64: 238, arm64: 237 };
const GET_MEMORY_POLICY: Readonly<Record<string, number>> = { x64: 239, arm64: 236 };

/** `MPOL_BIND`: memory comes from the given nodes only. */
const BIND = 2;

/** Cores and nodes that a mask of the system has. */
const MASK_BITS = 1024;

/** The calls of Linux that place the calling thread. */
class System {
  readonly #setAffinity: (pid: number, byteSize: number, mask: Uint8Array) => number;
  readonly #getAffinity: (pid: number, byteSize: number, mask: Uint8Array) => number;
  readonly #call: (number: number, mode: number, nodes: Uint8Array | null, bits: number) => number;
  readonly #read: (
    number: number,
    mode: Int32Array,
    nodes: Uint8Array,
    bits: number,
    at: number,
    flags: number,
  ) => number;
  readonly #textOf: (code: number) => string;

  constructor(private readonly koffi: Koffi) {
    const library = koffi.load(null);
    this.#setAffinity = library.func("int sched_setaffinity(int pid, size_t size, const uint8_t *mask)");
    this.#getAffinity = library.func("int sched_getaffinity(int pid, size_t size, _Out_ uint8_t *mask)");
    this.#call = library.func("long syscall(long number, long mode, const uint8_t *nodes, long bits)");
    this.#read = library.func(
      "long syscall(long number, _Out_ int *mode, _Out_ uint8_t *nodes, long bits, long at, long flags)",
    );
    this.#textOf = library.func("const char *strerror(int code)");
  }

  setCores(text: string): void {
    const mask = maskOf(coresOf(text));
    if (this.#setAffinity(0, mask.byteLength, mask) === 0) return;
    throw this.#refused("Unable to set NUMA thread affinity", `'cpu-cores' is '${text}'`);
  }

  setNode(text: number | string): void {
    const node = integerOf("Parsing 'numa-node' value", String(text));
    const mask = maskOf([node]);
    if (this.#call(SET_MEMORY_POLICY[process.arch]!, BIND, mask, MASK_BITS) === 0) return;
    throw this.#refused("Unable to set NUMA memory policy", `'numa-node' is '${text}'`);
  }

  /** @returns function that gives the thread its present cores and memory again */
  remember(): () => void {
    const cores = new Uint8Array(MASK_BITS / 8);
    const nodes = new Uint8Array(MASK_BITS / 8);
    const mode = new Int32Array(1);
    this.#getAffinity(0, cores.byteLength, cores);
    this.#read(GET_MEMORY_POLICY[process.arch]!, mode, nodes, MASK_BITS, 0, 0);
    return () => {
      this.#setAffinity(0, cores.byteLength, cores);
      const isDefault = mode[0] === 0;
      this.#call(
        SET_MEMORY_POLICY[process.arch]!,
        mode[0]!,
        isDefault ? null : nodes,
        isDefault ? 0 : MASK_BITS,
      );
    };
  }

  #refused(what: string, setting: string): TritonError {
    const why = this.#textOf(this.koffi.errno());
    return new TritonError("INTERNAL", `${what}: ${why} (${setting}, ${allowedHere()})`);
  }
}

/** The cores and nodes that this process may use. */
function allowedHere(): string {
  const status = readFileSync("/proc/self/status", "utf8");
  const [, cores = "?"] = /^Cpus_allowed_list:\s*(.+)$/m.exec(status) ?? [];
  const [, nodes = "?"] = /^Mems_allowed_list:\s*(.+)$/m.exec(status) ?? [];
  return `this process may use the cores ${cores} and the nodes ${nodes}`;
}

/**
 * Reads `0-3,8-11` as Triton does.
 *
 * @throws TritonError INVALID_ARG in Triton's words
 */
export function coresOf(text: string): number[] {
  return text.split(",").flatMap((range) => {
    const end = range.indexOf("-");
    if (end < 0) {
      throw new TritonError(
        "INVALID_ARG",
        `host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got ${range}`,
      );
    }
    const lower = integerOf("Parsing 'cpu-cores' value", range.slice(0, end));
    const upper = Math.min(integerOf("Parsing 'cpu-cores' value", range.slice(end + 1)), MASK_BITS - 1);
    return Array.from({ length: Math.max(0, upper - lower + 1) }, (_, index) => lower + index);
  });
}

/** Reads digits at the start of a text, as C++ does. */
function integerOf(what: string, text: string): number {
  const value = Number(/^\s*[+-]?\d+/.exec(text)?.[0]);
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) return value;
  throw new TritonError("INVALID_ARG", `${what}: Can't parse '${text}' to integer`);
}

function maskOf(bits: readonly number[]): Uint8Array {
  const mask = new Uint8Array(MASK_BITS / 8);
  for (const bit of bits) if (bit >= 0 && bit < MASK_BITS) mask[bit >> 3]! |= 1 << (bit & 7);
  return mask;
}
