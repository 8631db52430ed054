import { fetchHandler } from "@tritonjs/http/fetch";
import { serviceOf } from "@tritonjs/server";
import { SharedMemoryRegion } from "@tritonjs/server/shared-memory";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { httpMessage } from "../structures/http-message.js";
import { fetchTarget } from "../support/fetch-target.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";

/** Regions begin at pages. */
const PAGE_BYTES = 4096;
const REGION_BYTES = 64;
const MARK = 0xa5;

/**
 * Registration of shared memory and requests with tensors in it. The bytes before and after a region belong to others, and
 * must stay.
 */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  const key = `/tritonjs-fuzz-${process.pid}`;
  const memory = await SharedMemoryRegion.create(key, 2 * PAGE_BYTES);
  memory.write(new Uint8Array(memory.byteSize).fill(MARK));
  await serviceOf(triton).sharedMemory.registerSystem("kept", {
    key,
    offset: PAGE_BYTES,
    byteSize: REGION_BYTES,
  });
  const tensor = (region: string, bytes: number, offset = 0) => ({
    shared_memory_region: region,
    shared_memory_byte_size: bytes,
    shared_memory_offset: offset,
  });
  const infer = (model: string, datatype: string, shape: number[], input: object, output: object) =>
    httpMessage(
      `POST /v2/models/${model}/infer`,
      JSON.stringify({
        inputs: [{ name: "IN", datatype, shape, parameters: input }],
        outputs: [{ name: "OUT", parameters: output }],
      }),
    );
  return fetchTarget({
    open: (onError) => fetchHandler(triton, { onError }),
    seeds: [
      httpMessage(
        "POST /v2/systemsharedmemory/region/mine/register",
        JSON.stringify({ key, offset: 0, byte_size: 64 }),
      ),
      infer("fp32", "FP32", [2], tensor("mine", 8, 8), tensor("mine", 8)),
      httpMessage("POST /v2/systemsharedmemory/region/mine/unregister"),
      httpMessage("GET /v2/systemsharedmemory/region/kept/status"),
      httpMessage(
        "POST /v2/cudasharedmemory/region/c/register",
        JSON.stringify({ raw_handle: { b64: "AAAA" }, device_id: 0, byte_size: 8 }),
      ),
      infer("fp32", "FP32", [4], tensor("kept", 16), tensor("kept", 16, 32)),
      infer("uint8", "UINT8", [8], tensor("kept", 8, 56), tensor("kept", 8)),
      infer("bytes", "BYTES", [1], tensor("kept", 64), tensor("kept", 64)),
      infer("fp32", "FP32", [1], tensor("kept", 4), { binary_data: true }),
    ],
    tokens: [
      ...V2_TOKENS,
      "kept",
      "mine",
      "key",
      "offset",
      "byte_size",
      "raw_handle",
      "b64",
      "/../x",
      "//",
      "64",
      "60",
      "128",
    ],
    check() {
      const outside = memory.read();
      const untouched = [
        ...outside.subarray(REGION_BYTES, PAGE_BYTES),
        ...outside.subarray(PAGE_BYTES + REGION_BYTES),
      ];
      expectThat(
        untouched.every((byte) => byte === MARK),
        () => "bytes outside of the regions changed",
      );
    },
    async close() {
      await triton.close();
      memory.destroy();
    },
  });
}
