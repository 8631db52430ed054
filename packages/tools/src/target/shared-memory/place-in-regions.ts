import { randomBytes } from "node:crypto";
import { SharedMemoryRegion } from "@tritonjs/core/shared-memory";
import type { TensorDataSet } from "../../data/data-set.js";
import type { TestedModel } from "../../data/tested-model.js";
import { cleanUpAtExit } from "../../lifetime/exit-cleanups.js";
import type { RegionPart, SharedPayload } from "./shared-payloads.js";

/** The calls of a client that shared memory needs. */
export interface RegionClient {
  registerSystemSharedMemory(
    name: string,
    region: { readonly key: string; readonly byteSize: number },
  ): Promise<void>;
  unregisterSystemSharedMemory(name: string): Promise<void>;
}

/** Tensors in shared memory, and how to free them. */
export interface SharedData {
  readonly payloads: readonly SharedPayload[];
  release(): Promise<void>;
}

/** Regions of concurrent responses would overlap anyway; offsets are aligned for the widest element. */
const ALIGNMENT = 64;

/**
 * Writes the inputs of all payloads into one region for each input, creates a region for each output, and registers
 * them at the server. Responses write into the same output regions, as with perf_analyzer.
 *
 * @throws TritonError UNAVAILABLE without the package koffi, UNSUPPORTED on Windows, and the errors of the server.
 */
export async function placeInRegions(
  client: RegionClient,
  model: TestedModel,
  data: TensorDataSet,
  outputByteSize: number,
): Promise<SharedData> {
  const prefix = `tritonjs_perf_${process.pid}_${randomBytes(4).toString("hex")}`;
  const regions: { readonly name: string; readonly region: SharedMemoryRegion; isRegistered: boolean }[] = [];
  const forget = cleanUpAtExit(() => {
    for (const { region } of regions) region.destroy();
  });
  const release = async (): Promise<void> => {
    for (const { name, region, isRegistered } of regions) {
      // The server may be gone.
      if (isRegistered) await client.unregisterSystemSharedMemory(name).catch(() => {});
      region.destroy();
    }
    forget();
  };
  const create = async (name: string, byteSize: number): Promise<SharedMemoryRegion> => {
    const region = await SharedMemoryRegion.create(`/${name}`, Math.max(1, byteSize), { createOnly: true });
    const entry = { name, region, isRegistered: false };
    regions.push(entry);
    await client.registerSystemSharedMemory(name, { key: region.key, byteSize: region.byteSize });
    entry.isRegistered = true;
    return region;
  };
  try {
    const inputs: Map<string, RegionPart>[] = data.payloads.map(() => new Map());
    for (const [index, { name }] of model.inputs.entries()) {
      const regionName = `${prefix}_input_${index}`;
      let byteSize = 0;
      data.payloads.forEach((payload, i) => {
        const tensor = payload.inputs.find((input) => input.name === name);
        if (tensor === undefined) return;
        inputs[i]!.set(name, { region: regionName, offset: byteSize, byteSize: tensor.bytes.length });
        byteSize += Math.ceil(tensor.bytes.length / ALIGNMENT) * ALIGNMENT;
      });
      if (byteSize === 0) continue;
      const region = await create(regionName, byteSize);
      data.payloads.forEach((payload, i) => {
        const part = inputs[i]!.get(name);
        const tensor = payload.inputs.find((input) => input.name === name);
        if (part !== undefined && tensor !== undefined) region.write(tensor.bytes, part.offset);
      });
    }
    const outputs = new Map<string, RegionPart>();
    for (const [index, { name }] of model.outputs.entries()) {
      const region = `${prefix}_output_${index}`;
      await create(region, outputByteSize);
      outputs.set(name, { region, offset: 0, byteSize: outputByteSize });
    }
    return { payloads: inputs.map((parts) => ({ inputs: parts, outputs })), release };
  } catch (cause) {
    await release();
    throw cause;
  }
}
