import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { type HostPolicy, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onnxModel } from "../../../examples/onnx-writer/onnx-writer.js";
import { identityOnnx } from "../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../test/support/outcome.js";
import { RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../test/support/served-options.js";

describe("threads of a repository model", () => {
  /** Node reports each worker thread that starts. */
  let threads = 0;

  const onThread = () => void threads++;

  beforeEach(() => {
    threads = 0;
    subscribe("worker_threads", onThread);
  });

  afterEach(() => void unsubscribe("worker_threads", onThread));

  const files = (config: string, model = identityOnnx("FLOAT", ["batch", 2])) => ({
    "m/config.pbtxt": `backend: "onnxruntime" ${config}`,
    "m/1/model.onnx": model,
  });
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  const options = { modelControlMode: "explicit", logger } as const;
  const negation = onnxModel({
    name: "negation",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", 2] }],
    outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", 2] }],
    nodes: [{ op: "Neg", inputs: ["x"], outputs: ["y"] }],
  });

  describe("a repository model", () => {
    it("uses one thread for each instance, including the one that describes the model", async () => {
      await using models = await RepositoryOnDisk.create(files("instance_group [ { count: 3 } ]"));
      await using triton = new Triton(servedOptions({ modelRepository: models.path, ...options }));
      await triton.loadModel("m");
      expect(threads).toBe(3);
      expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
    });

    it("reuses the threads of an unloaded model and answers from its own file", async () => {
      await using models = await RepositoryOnDisk.create(files("instance_group [ { count: 1 } ]"));
      await using triton = new Triton(servedOptions({ modelRepository: models.path, ...options }));
      await triton.loadModel("m");
      await triton.unloadModel("m");
      const before = threads;
      await models.write({ "m/1/model.onnx": negation });
      await triton.loadModel("m");
      expect(threads - before).toBe(0);
      expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([-1, -2]);
    });

    it("leaves its thread to the next model when it is rejected after opening", async () => {
      const wrong =
        'instance_group [ { count: 1 } ] output [ { name: "z" data_type: TYPE_FP32 dims: [ 2 ] } ]';
      await using models = await RepositoryOnDisk.create(files(wrong));
      await using triton = new Triton(servedOptions({ modelRepository: models.path, ...options }));
      expect(await outcomeOf(triton.loadModel("m"))).toContain("unexpected inference output 'z'");
      const before = threads;
      await models.write(files("instance_group [ { count: 1 } ]"));
      await triton.loadModel("m");
      expect(threads - before).toBe(0);
      expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
    });

    it("ends its thread when it cannot be opened, and the error names the reason", async () => {
      const broken = onnxModel({
        name: "broken",
        opset: 17,
        inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch"] }],
        outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch"] }],
        nodes: [{ op: "NoSuchOperator", inputs: ["x"], outputs: ["y"] }],
      });
      await using models = await RepositoryOnDisk.create(files("", broken));
      await using triton = new Triton(servedOptions({ modelRepository: models.path, ...options }));
      expect(await outcomeOf(triton.loadModel("m"))).toMatch(/cannot load the ONNX model .*NoSuchOperator/);
      await models.write(files(""));
      await triton.loadModel("m");
      expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
    });

    it("is opened in a process, without a thread, when its instances are processes", async () => {
      const webgpu = 'execution_accelerators { gpu_execution_accelerator : [ { name : "webgpu" } ] }';
      const config = `instance_group [ { count: 1 } ] optimization { ${webgpu} }`;
      await using models = await RepositoryOnDisk.create(files(config));
      await using triton = new Triton(servedOptions({ modelRepository: models.path, ...options }));
      await triton.loadModel("m");
      expect(threads).toBe(0);
      expect([...(await triton.infer("m", { x: [[1, 2]] })).y!.data]).toEqual([1, 2]);
    });
  });
});

const allowed = allowedCores("/proc/self");

/** One core that the tests may use, which is not all of them on a machine with several. */
const core = Number(allowed.match(/\d+/g)?.at(-1) ?? 0);

const one = `${core}-${core}`;

const isLinux = process.platform === "linux";

const elsewhere = isLinux ? "" : " (skipped: only Linux binds threads to cores)";

function allowedCores(path: string): string {
  try {
    return /^Cpus_allowed_list:\s*(.+)$/m.exec(readFileSync(`${path}/status`, "utf8"))![1]!;
  } catch {
    // The thread has ended meanwhile.
    return "";
  }
}

/** Allowed cores of each thread of a process, without those of threads that end meanwhile. */
function threadsOf(pid: number | string): string[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.map((thread) => allowedCores(`/proc/${pid}/task/${thread}`)).filter((cores) => cores !== "");
}

/** Answers with the first core that its thread may use, whether its memory comes from node 0, and its process. */
const CORES_JS = `
  import { readFileSync } from "node:fs";
  export default (requests) => requests.map(({ inputs: { INPUT0 } }) => {
    const [, cores] = /^Cpus_allowed_list:\\s*(\\d+)/m.exec(readFileSync("/proc/thread-self/status", "utf8"));
    const policy = readFileSync("/proc/thread-self/numa_maps", "utf8").includes(" bind:0 ");
    return { OUTPUT0: Float32Array.of(Number(cores), policy ? 1 : 0, process.pid) };
  });`;

const cores = (group: string) => ({
  "cores/config.pbtxt": `backend: "javascript"
    input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
    output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 3 ] } ]
    instance_group [ { count: 1 ${group} } ]`,
  "cores/1/model.mjs": CORES_JS,
});

async function serve(files: Record<string, string | Uint8Array>, options: ServedOptions) {
  const models = await RepositoryOnDisk.create(files);
  const triton = new Triton(
    servedOptions({
      modelRepository: models.path,
      exitOnError: false,
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      ...options,
    }),
  );
  await triton.ready();
  return {
    triton,
    async [Symbol.asyncDispose]() {
      await triton.close();
      await models[Symbol.asyncDispose]();
    },
  };
}

/** The core of the model's thread, whether its memory is bound to node 0, and its process. */
async function told(triton: Triton): Promise<number[]> {
  const { OUTPUT0 } = await triton.infer("cores", { INPUT0: [1] });
  return Array.from(OUTPUT0!.data as Float32Array);
}

describe.skipIf(!isLinux)(`a host policy places${elsewhere}`, () => {
  it("the thread of an instance of its device, and no other thread", async () => {
    await using served = await serve(cores(""), { hostPolicies: { cpu: { cpuCores: one, numaNode: 0 } } });
    expect((await told(served.triton)).slice(0, 2)).toEqual([core, 1]);
    expect(allowedCores("/proc/thread-self")).toBe(allowed);
  });

  it("an instance whose group names it", async () => {
    await using served = await serve(cores('host_policy: "narrow"'), {
      hostPolicies: { narrow: { cpuCores: one }, cpu: { cpuCores: "0-1023" } },
    });
    expect((await told(served.triton)).slice(0, 2)).toEqual([core, 0]);
  });

  it("an ONNX session with its pool of threads", async () => {
    const count = () => threadsOf("self").filter((list) => list === String(core)).length;
    const before = count();
    await using _ = await serve(
      {
        "onnx/1/model.onnx": identityOnnx("FLOAT", [1]),
        "onnx/config.pbtxt": 'backend: "onnxruntime" instance_group [ { count: 1 } ]',
      },
      { hostPolicies: { cpu: { cpuCores: one } } },
    );
    expect(count()).toBeGreaterThan(before);
  });

  it("all threads of a JavaScript process", async () => {
    const group = 'parameters { key: "isolation" value { string_value: "process" } }';
    const files = cores("");
    await using served = await serve(
      { ...files, "cores/config.pbtxt": `${files["cores/config.pbtxt"]}\n${group}` },
      { hostPolicies: { cpu: { cpuCores: one, numaNode: 0 } } },
    );
    const pid = (await told(served.triton))[2]!;
    expect(new Set(threadsOf(pid))).toEqual(new Set([String(core)]));
    expect((await told(served.triton)).slice(0, 2)).toEqual([core, 1]);
    expect(allowedCores("/proc/thread-self")).toBe(allowed);
  });
});

describe.skipIf(!isLinux)(`a host policy that the system refuses${elsewhere}`, () => {
  it("fails its instances, and no others", async () => {
    const format =
      "Invalid argument: host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 1";
    const cases: readonly (readonly [HostPolicy, string, isolation?: string])[] = [
      [
        { cpuCores: "900-1000" },
        "Internal: Unable to set NUMA thread affinity: Invalid argument ('cpu-cores' is '900-1000', ",
      ],
      [{ cpuCores: "1" }, format, "process"],
      [{ numaNode: "one" }, "Invalid argument: Parsing 'numa-node' value: Can't parse 'one' to integer"],
      [
        { numaNode: 63 },
        "Internal: Unable to set NUMA memory policy: Invalid argument ('numa-node' is '63', ",
      ],
    ];
    const files = cases.flatMap(([, , isolation = "worker"], i) => [
      [
        `wrong${i}/config.pbtxt`,
        `${cores(`host_policy: "policy${i}"`)["cores/config.pbtxt"]}
         parameters { key: "isolation" value { string_value: "${isolation}" } }`,
      ],
      [`wrong${i}/1/model.mjs`, CORES_JS],
    ]);
    await using served = await serve(
      { ...cores(""), ...Object.fromEntries(files) },
      { hostPolicies: Object.fromEntries(cases.map(([policy], i) => [`policy${i}`, policy])) },
    );
    const index = await serviceOf(served.triton).repositoryIndex(false);
    for (const [i, [, reason]] of cases.entries()) {
      expect(index.find(({ name }) => name === `wrong${i}`)?.reason).toContain(reason);
    }
    expect(index.find(({ name }) => name === "cores")?.state).toBe("READY");
  });
});
