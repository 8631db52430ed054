import { randomUUID } from "node:crypto";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";
import { checkMultiples, row } from "./values.mjs";

/** Prefix of the shared memory objects of the run. */
export const OBJECT_PREFIX = `tritonjs-chaos-${process.pid}-`;
const HALF = 64 * 1024;

/** A client whose tensors are in shared memory. It registers its region for a few requests at a time. */
export class SharedMemoryClient {
  #client;
  #region;
  #name;
  #left = 0;

  constructor(client) {
    this.#client = client;
  }

  async infer(model, random) {
    if (this.#left-- <= 0) await this.#renew(random);
    const x = row(random, random.between(1, HALF / 4));
    this.#region.write(x);
    const range = { region: this.#name, byteSize: x.byteLength };
    await this.#client.infer(model, {
      inputs: { x: { datatype: "FP32", shape: [1, x.length], sharedMemory: range } },
      outputs: [{ name: "y", sharedMemory: { ...range, offset: HALF } }],
    });
    checkMultiples(
      x,
      2,
      this.#region.tensor("FP32", [1, x.length], HALF).elements,
      "output in shared memory",
    );
  }

  async close() {
    if (this.#region === undefined) return;
    const region = this.#region;
    this.#region = undefined;
    try {
      await this.#client.unregisterSystemSharedMemory(this.#name);
    } finally {
      region.destroy();
    }
  }

  async #renew(random) {
    await this.close();
    this.#left = 0;
    this.#name = `${OBJECT_PREFIX}${randomUUID().slice(0, 8)}`;
    const region = await SharedMemoryRegion.create(`/${this.#name}`, 2 * HALF);
    try {
      await this.#client.registerSystemSharedMemory(this.#name, region);
    } catch (error) {
      region.destroy();
      throw error;
    }
    this.#region = region;
    this.#left = random.between(1, 50);
  }
}
