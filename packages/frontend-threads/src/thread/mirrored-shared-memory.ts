import {
  DescriptorObject,
  RegionUsers,
  type RegisteredCudaRegion,
  RegisteredRegion,
  type RegisteredSystemRegion,
  SharedMemory,
  type SystemRegionRequest,
  type WatchedRegion,
} from "@tritonjs/core/frontend";
import type { Control } from "../messages/control.js";

/**
 * The shared memory of the engine, as a thread uses it. The engine registers regions and owns their descriptors, which
 * all threads of a process share. A count of users in shared memory keeps a descriptor open while a thread uses it.
 */
export class MirroredSharedMemory extends SharedMemory {
  readonly #control: Control;
  readonly #words: Int32Array;
  #current = new Map<string, MirroredRegion>();

  constructor(allowed: boolean, words: Int32Array, control: Control) {
    super(allowed);
    this.#words = words;
    this.#control = control;
  }

  /** Takes the regions of the engine. */
  take(regions: readonly WatchedRegion[]): void {
    this.#current = new Map(
      regions.map((region) => {
        const known = this.#current.get(region.status.name);
        const isSame =
          known?.watched.descriptor === region.descriptor && known.watched.index === region.index;
        return [region.status.name, isSame ? known : new MirroredRegion(this, region, this.#words)];
      }),
    );
  }

  /** True if a region is still registered. */
  isCurrent(region: MirroredRegion): boolean {
    this.#control.catchUp();
    return this.#current.get(region.status.name) === region;
  }

  override systemStatus(name: string): RegisteredSystemRegion[] {
    return this.#control.callSync("systemStatus", name);
  }

  override registerSystem(name: string, region: SystemRegionRequest): Promise<void> {
    return this.#control.call("registerSystem", name, region);
  }

  override unregisterSystem(name: string): void {
    this.#control.callSync("unregisterSystem", name);
  }

  override cudaStatus(name: string): RegisteredCudaRegion[] {
    return this.#control.callSync("cudaStatus", name);
  }

  override settle(): void {
    this.#control.tell("settleRegions");
  }

  protected override region(name: string): RegisteredRegion | undefined {
    this.#control.catchUp();
    return this.#current.get(name);
  }
}

/** A region that the engine has registered. */
class MirroredRegion extends RegisteredRegion {
  readonly watched: WatchedRegion;
  readonly #memory: MirroredSharedMemory;

  constructor(memory: MirroredSharedMemory, watched: WatchedRegion, words: Int32Array) {
    super(watched.status, new DescriptorObject(watched.descriptor), new RegionUsers(words, watched.index));
    this.watched = watched;
    this.#memory = memory;
  }

  /** The place of the count may belong to another region by now. */
  override use(): boolean {
    if (!super.use()) return false;
    if (this.#memory.isCurrent(this)) return true;
    if (this.endUse()) this.#memory.settle();
    return false;
  }
}
