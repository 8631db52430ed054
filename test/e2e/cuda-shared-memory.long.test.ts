import { fileURLToPath } from "node:url";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { requireKoffi } from "@tritonjs/core/internal";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { cCompiler, compileCudart, withoutCompiler } from "../support/cudart-stand-in.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

/*
 * CUDA shared memory against a stand-in for CUDA's runtime library, in which memory of a GPU is an object of shared
 * memory. The client is this process, and the server another one: handles of CUDA are for other processes.
 */

/** Memory of the stand-in for a GPU, of this process. */
interface GpuMemory {
  readonly handle: Uint8Array;
  read(count: number, offset?: number): number[];
  write(values: readonly number[]): void;
  free(): void;
}

describe.skipIf(cCompiler === undefined)(`CUDA shared memory${withoutCompiler}`, () => {
  let folder: RepositoryOnDisk;
  let cuda: { allocate(byteSize: number): GpuMemory };
  beforeAll(async () => {
    folder = await RepositoryOnDisk.create({});
    cuda = client(compileCudart(folder.path));
  });
  afterAll(() => folder[Symbol.asyncDispose]());

  function client(file: string) {
    const koffi = requireKoffi();
    const library = koffi.load(file);
    const free = library.func("int cudaFree(uint64_t at)");
    const malloc = library.func("int cudaMalloc(uint64_t to, uint64_t size)");
    const getHandle = library.func("int cudaIpcGetMemHandle(uint64_t to, uint64_t at)");
    const memcpy = library.func("int cudaMemcpy(uint64_t to, uint64_t from, uint64_t size, int kind)");
    return {
      allocate(byteSize: number): GpuMemory {
        const word = new BigUint64Array(1);
        const handle = new Uint8Array(64);
        expect(malloc(koffi.address(word), byteSize)).toBe(0);
        expect(getHandle(koffi.address(handle), word[0])).toBe(0);
        return {
          handle,
          read(count, offset = 0) {
            const values = new Float32Array(count);
            expect(memcpy(koffi.address(values), word[0]! + BigInt(offset), 4 * count, 4)).toBe(0);
            return [...values];
          },
          free: () => expect(free(word[0])).toBe(0),
          write(values) {
            const floats = Float32Array.from(values);
            expect(memcpy(word[0], koffi.address(floats), floats.byteLength, 4)).toBe(0);
          },
        };
      },
    };
  }

  type Urls = { readonly http: string; readonly grpc: string };
  const served = new Map<string, Promise<Urls>>();
  const programs: Program[] = [];
  afterAll(async () => {
    for (const program of programs) program.signal("SIGTERM");
    await Promise.all(programs.map(({ ended }) => ended));
  });

  /** A server for all tests that ask for the same. Each test unregisters its regions. */
  async function serve({ threads = 0, allowed = true, gpus = true } = {}): Promise<Urls> {
    const key = JSON.stringify([threads, allowed, gpus]);
    const urls = served.get(key) ?? startServer(threads, allowed, gpus);
    served.set(key, urls);
    onTestFinished(async () => {
      if (allowed) await new HttpClient((await urls).http).unregisterCudaSharedMemory();
    });
    return urls;
  }

  async function startServer(threads: number, allowed: boolean, gpus: boolean): Promise<Urls> {
    const module = fileURLToPath(new URL("../fixtures/serves-shared-memory.mjs", import.meta.url));
    const program = new Program(process.execPath, [module, String(threads), String(allowed)], {
      cwd: repositoryRoot,
      env: gpus ? { LD_LIBRARY_PATH: folder.path } : {},
    });
    programs.push(program);
    const line = await program.untilOutput("}\n");
    return JSON.parse(line.trim().split("\n").at(-1)!) as Urls;
  }

  const shared = (region: string, byteSize: number, offset = 0) => ({
    sharedMemory: { region, byteSize, offset },
  });
  const x = (region: string, count: number) => ({
    x: { datatype: "FP32" as const, shape: [count], ...shared(region, 4 * count) },
  });

  it.each([
    ["HTTP", 0],
    ["gRPC", 0],
    ["HTTP, with frontends in threads", 1],
    ["gRPC, with frontends in threads", 1],
  ] as const)("carries inputs and outputs over %s", async (way, threads) => {
    const urls = await serve({ threads });
    const client = way.startsWith("HTTP") ? new HttpClient(urls.http) : new GrpcClient(urls.grpc);
    onTestFinished(() => client.close());
    const input = cuda.allocate(64);
    const output = cuda.allocate(64);
    input.write([1, 2, 3]);
    await client.registerCudaSharedMemory("in", { rawHandle: input.handle, deviceId: 0, byteSize: 64 });
    await client.registerCudaSharedMemory("out", { rawHandle: output.handle, deviceId: 1, byteSize: 32 });
    const call = { inputs: x("in", 3), outputs: [{ name: "y", ...shared("out", 12, 4) }] };
    await client.infer("double", call);
    expect(output.read(4)).toEqual([0, 2, 4, 6]);
    input.write([4, 5, 6]);
    await client.infer("double", call);
    expect(output.read(3, 4)).toEqual([8, 10, 12]);
    // Answers of the protocols differ in how they name their fields.
    expect(JSON.stringify(await client.getCudaSharedMemoryStatus("out"))).toMatch(/"out".*1.*32|32.*1/);
    await client.unregisterCudaSharedMemory("in");
    await expect(client.infer("double", call)).rejects.toMatchObject({
      message: expect.stringContaining("Unable to find shared memory region: 'in'"),
    });
    await client.unregisterCudaSharedMemory();
    expect(JSON.stringify(await client.getCudaSharedMemoryStatus())).not.toContain("out");
  });

  it("refuses handles, devices, sizes, ranges and names that are wrong, and then serves a good request", async () => {
    const urls = await serve();
    const client = new HttpClient(urls.http);
    const { handle } = cuda.allocate(64);
    const register = (region: object, name = "r") =>
      client.registerCudaSharedMemory(name, { rawHandle: handle, deviceId: 0, byteSize: 64, ...region });
    const failed = "failed to register shared memory region 'r'";
    const refusals: readonly (readonly [object, string])[] = [
      [
        { rawHandle: new Uint8Array(64) },
        `${failed}: failed to open CUDA IPC handle: invalid resource handle (CUDA error 400)`,
      ],
      [{ rawHandle: new Uint8Array(63) }, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"],
      [{ rawHandle: "%%%" }, "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"],
      [{ deviceId: 7 }, `${failed}: failed to open CUDA IPC handle: invalid device ordinal (CUDA error 101)`],
      [{ byteSize: 65 }, `${failed}: invalid args`],
      [{ byteSize: 0 }, `${failed}: invalid args`],
    ];
    for (const [region, message] of refusals) {
      await expect(register(region)).rejects.toMatchObject({ code: "INVALID_ARG", message });
    }
    await register({});
    await expect(register({})).rejects.toMatchObject({
      message: "shared memory region 'r' already in manager",
    });
    await expect(client.infer("double", { inputs: x("r", 17) })).rejects.toMatchObject({
      message: "Invalid offset + byte size for shared memory region: 'r'",
    });
    await expect(client.getSystemSharedMemoryStatus("r")).rejects.toMatchObject({
      message: "The region named 'r' is registered as CUDA shared memory, not system shared memory",
    });
    // Unregistering regions of the other kind leaves it.
    await client.unregisterSystemSharedMemory();
    await client.unregisterSystemSharedMemory("r");
    expect((await client.infer("double", { inputs: x("r", 2) })).elements("y")).toHaveLength(2);
  });

  it("refuses a handle whose memory the other process has freed, and keeps regions that were registered before", async () => {
    const client = new HttpClient((await serve()).http);
    const gone = cuda.allocate(16);
    const kept = cuda.allocate(16);
    kept.write([1, 2]);
    const region = (memory: GpuMemory) => ({ rawHandle: memory.handle, deviceId: 0, byteSize: 16 });
    await client.registerCudaSharedMemory("kept", region(kept));
    gone.free();
    await expect(client.registerCudaSharedMemory("gone", region(gone))).rejects.toMatchObject({
      message: expect.stringContaining(
        "failed to open CUDA IPC handle: invalid resource handle (CUDA error 400)",
      ),
    });
    kept.free();
    expect((await client.infer("double", { inputs: x("kept", 2) })).elements("y")).toEqual(
      Float32Array.of(2, 4),
    );
  });

  it("takes the bytes that Triton's clients send", async () => {
    const { http } = await serve();
    const region = cuda.allocate(16);
    region.write([1.5, -2]);
    const post = (path: string, body: string) => fetch(`${http}/v2/${path}`, { method: "POST", body });
    const b64 = Buffer.from(region.handle).toString("base64");
    const registered = await post(
      "cudasharedmemory/region/input0_data/register",
      `{"raw_handle":{"b64":"${b64}"},"device_id":0,"byte_size":16}`,
    );
    expect([registered.status, await registered.text()]).toEqual([200, ""]);
    const status = await fetch(`${http}/v2/cudasharedmemory/status`);
    expect(await status.json()).toEqual([{ name: "input0_data", device_id: 0, byte_size: 16 }]);
    const parameters = '{"shared_memory_region":"input0_data","shared_memory_byte_size":8}';
    const answer = await post(
      "models/double/infer",
      `{"inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":${parameters}}]}`,
    );
    expect(await answer.json()).toMatchObject({ outputs: [{ name: "y", data: [3, -4] }] });
    const missing = await post("cudasharedmemory/region/a/register", '{"device_id":0,"byte_size":16}');
    expect([missing.status, await missing.json()]).toEqual([
      400,
      { error: "Shared memory register request has no 'raw_handle' field" },
    ]);
  });

  it("keeps a region that is unregistered while requests use it, until they are done", async () => {
    const { http } = await serve();
    const client = new HttpClient(http);
    const region = cuda.allocate(400_000);
    await client.registerCudaSharedMemory("r", { rawHandle: region.handle, deviceId: 0, byteSize: 400_000 });
    const answers = Array.from({ length: 20 }, () => client.infer("double", { inputs: x("r", 100_000) }));
    await client.unregisterCudaSharedMemory("r");
    for (const answer of await Promise.allSettled(answers)) {
      if (answer.status === "rejected")
        expect(answer.reason.message).toContain("Unable to find shared memory region");
    }
    expect(await client.getCudaSharedMemoryStatus()).toEqual([]);
  });

  it("is closed to clients unless they are allowed, and unknown without a GPU", async () => {
    const { handle } = cuda.allocate(16);
    const region = { rawHandle: handle, deviceId: 0, byteSize: 16 };
    const closed = new HttpClient((await serve({ allowed: false })).http);
    await expect(closed.registerCudaSharedMemory("r", region)).rejects.toMatchObject({
      message: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    });
    const none = new HttpClient((await serve({ gpus: false })).http);
    await expect(none.registerCudaSharedMemory("r", region)).rejects.toMatchObject({
      message: "failed to register CUDA shared memory region: 'r', GPUs not supported",
    });
  });
});
