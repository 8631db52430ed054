import type { Shape } from "@tritonjs/protocol";
import type { CudaPools, PoolMemory } from "../../gpu/cuda-pools.js";
import type { CudaStream } from "../../gpu/cuda-runtime.js";
import type { NativeSession } from "./native-session.js";
import { valueAt } from "./native-values.js";
import { roundedUp } from "./staging-memory.js";

/** A tensor that a bucket keeps bound. */
export interface BoundTensor {
  readonly name: string;
  readonly side: "input" | "output";
  readonly elementType: number;
  readonly shape: Shape;
  readonly byteSize: number;
}

/** A binding of ONNX Runtime for one set of shapes, whose inputs and outputs lie at fixed places on the GPU. */
export interface Bucket {
  readonly binding: number;
  /** Addresses on the GPU by the names of tensors. */
  readonly places: ReadonlyMap<string, bigint>;
  /** Values over them. */
  readonly values: readonly number[];
  /** Number of the CUDA graph of this bucket; undefined if it is not captured. */
  readonly graph: number | undefined;
}

/** Buckets without graphs that are kept; the one not used for longest goes first. */
const MOST_BUCKETS = 16;

/** Graphs of one instance. Each takes memory of the GPU. Batches of further shapes run without a graph. */
const MOST_GRAPHS = 64;

/** Shapes that are remembered because the pool had no room for them. */
const MOST_REFUSED = 1000;

/** Memory on the GPU is allocated in steps of at least this size, to which CUDA rounds up anyway. */
const LEAST_BYTES = 512;

/** Graphs of a process have different numbers, from 1: ONNX Runtime tells those of a session apart by them. */
let graphCount = 0;

/**
 * Memory on a GPU for the inputs and outputs of one instance, which batches of all shapes share:
 *
 * ```
 * memory of 'x'   |#######################|      as large as the largest batch so far
 * bucket [1, 4]   |##|                           each bucket has values over its beginning, bound once
 * bucket [8, 4]   |###################|
 * ```
 *
 * In the steady state, a run allocates nothing and binds nothing: it copies inputs to their places, runs, and copies
 * outputs from theirs. A CUDA graph needs that, because it has recorded the addresses.
 */
export class DeviceBuffers {
  readonly #memory = new Map<string, PoolMemory>();
  readonly #buckets = new Map<string, Bucket>();
  /** Shapes for which the pool had no room, so that it is not asked in each run. */
  readonly #refused = new Set<string>();

  private constructor(
    private readonly session: NativeSession,
    private readonly deviceId: number,
    private readonly pools: CudaPools,
    /** Copies to the GPU and from it. */
    readonly stream: CudaStream,
  ) {}

  /** Undefined if the session is not on a GPU of CUDA, or CUDA's library is missing. */
  static open(session: NativeSession, pools: CudaPools | undefined): DeviceBuffers | undefined {
    const id = session.deviceMemory?.cudaDevice;
    if (id === undefined || pools === undefined) return undefined;
    const stream = pools.stream(id);
    return stream && new DeviceBuffers(session, id, pools, stream);
  }

  get byteSize(): number {
    return [...this.#memory.values()].reduce((sum, { byteSize }) => sum + byteSize, 0);
  }

  get bucketCount(): number {
    return this.#buckets.size;
  }

  /**
   * The bucket of a batch.
   *
   * @param isGraph whether it gets a CUDA graph
   * @returns undefined if the pool has no room, or the instance has as many graphs as it may
   */
  bucket(tensors: readonly BoundTensor[], isGraph: boolean): Bucket | undefined {
    const shapes = tensors.map(({ side, name, shape }) => `${side} ${name} ${shape.join()}`).join(";");
    const key = `${isGraph ? "graph" : ""};${shapes}`;
    const known = this.#buckets.get(key);
    if (known !== undefined) {
      // The map is in the order of use.
      this.#buckets.delete(key);
      this.#buckets.set(key, known);
      return known;
    }
    if (this.#refused.has(shapes)) return undefined;
    if (!tensors.every((tensor) => this.#hasMemory(tensor))) {
      if (this.#refused.size >= MOST_REFUSED) this.#refused.clear();
      this.#refused.add(shapes);
      return undefined;
    }
    const graphs = [...this.#buckets.values()].filter(({ graph }) => graph !== undefined).length;
    if (isGraph && graphs >= MOST_GRAPHS) return undefined;
    const bucket = this.#make(tensors, isGraph);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size - graphs > MOST_BUCKETS) this.#dropOldest();
    return bucket;
  }

  /** Frees all memory. No batch may run. */
  close(): void {
    this.#dropAll();
    for (const memory of this.#memory.values()) memory.free();
    this.#memory.clear();
    this.stream.close();
  }

  #hasMemory({ side, name, byteSize }: BoundTensor): boolean {
    const key = placeOf(side, name);
    const before = this.#memory.get(key);
    if (before !== undefined && before.byteSize >= byteSize) return true;
    const memory = this.pools.device(this.deviceId, roundedUp(byteSize, LEAST_BYTES));
    if (memory === undefined) return false;
    if (before !== undefined) {
      // The values of all buckets and the graphs have the old address.
      this.#dropAll();
      before.free();
    }
    this.#memory.set(key, memory);
    return true;
  }

  #make(tensors: readonly BoundTensor[], isGraph: boolean): Bucket {
    const { api, address, deviceMemory } = this.session;
    const binding = api.read((to) => api.createIoBinding(address, to));
    const places = new Map<string, bigint>();
    const values: number[] = [];
    for (const { side, name, elementType, shape, byteSize } of tensors) {
      const place = this.#memory.get(placeOf(side, name))!.address;
      const value = valueAt(api, deviceMemory!.info, Number(place), byteSize, elementType, shape);
      places.set(placeOf(side, name), place);
      values.push(value);
      api.check((side === "input" ? api.bindInput : api.bindOutput)(binding, name, value));
    }
    return { binding, places, values, graph: isGraph ? ++graphCount : undefined };
  }

  #dropOldest(): void {
    for (const [key, bucket] of this.#buckets) {
      if (bucket.graph !== undefined) continue;
      this.#buckets.delete(key);
      this.#release(bucket);
      return;
    }
  }

  #dropAll(): void {
    for (const bucket of this.#buckets.values()) this.#release(bucket);
    this.#buckets.clear();
  }

  #release({ binding, values }: Bucket): void {
    const { api } = this.session;
    api.releaseIoBinding(binding);
    for (const value of values) api.releaseValue(value);
  }
}

/** Key of a tensor: an input and an output may have the same name. */
export function placeOf(side: BoundTensor["side"], name: string): string {
  return `${side} ${name}`;
}
