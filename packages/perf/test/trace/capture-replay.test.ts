import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { type CaptureOptions, capture } from "@tritonjs/operations/capture";
import { readCapture, replayTrace } from "@tritonjs/perf";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "captures-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A classifier whose first weight can be changed, with a text input that is answered as it is. */
function classifier(weight = 1, tracer?: ReturnType<typeof capture>): Triton {
  const triton = new Triton({
    ...(tracer && { extensions: [tracer] }),
    allowCpuMetrics: false,
    logInfo: false,
    security: { restrictedEndpoints: [] },
  });
  triton.bind({
    modelName: "m",
    inputs: [
      { name: "x", dtype: "FP32", shape: [2] },
      { name: "name", dtype: "BYTES", shape: [1] },
    ],
    outputs: [
      { name: "scores", dtype: "FP32", shape: [2] },
      { name: "echo", dtype: "BYTES", shape: [1] },
    ],
    inferFunc: batch(({ x, name }) => {
      if (x.data.some((value) => value > 1e6)) throw new Error("too large");
      return {
        scores: x.data.map((value, i) => (i % 2 === 0 ? weight * value : value)) as never,
        echo: name,
      };
    }),
    config: { maxBatchSize: 4 },
  });
  return triton;
}

/** Captures so many requests, and one that fails, in a folder that is removed after the test unless one is given. */
async function captured(options: Partial<CaptureOptions> = {}, count = 60, given?: string) {
  const directory = given ?? (await folder());
  const triton = classifier(1, capture({ directory, rate: 1, ...options }));
  await triton.ready();
  for (let i = 0; i < count; i++) {
    const x = [Math.sin(i), Math.cos(i)];
    await triton.infer(
      "m",
      { x: [x], name: [[`n${i}`]] },
      { id: `r${i}`, parameters: { country: i % 4 === 0 ? "de" : "fr" } },
    );
  }
  await triton.infer("m", { x: [[1e9, 1]], name: [["large"]] }, { id: "bad" }).catch(() => {});
  await triton.close();
  const files = (await readdir(directory)).map((name) => join(directory, name));
  return { directory, files };
}

/** Files of 60 requests and one that failed. */
let files: readonly string[];
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "captures-"));
  ({ files } = await captured({}, 60, directory));
  return () => rm(directory, { recursive: true });
});

async function replay(...args: string[]) {
  let [output, errors] = ["", ""];
  const terminal = {
    write: (text: string) => {
      output += text;
    },
    writeError: (text: string) => {
      errors += text;
    },
  };
  const code = await replayTrace(args, terminal as never);
  return { code, output, errors };
}

describe("captured requests", () => {
  it("are Parquet files with tensors, parameters and errors", async () => {
    expect(files).toHaveLength(1);
    const bytes = await readFile(files[0]!);
    expect([bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()]).toEqual(["PAR1", "PAR1"]);
    const rows = await readCapture(files);
    expect(rows).toHaveLength(61);
    expect(rows[4]).toMatchObject({ model: "m", version: 1, id: "r4", parameters: { country: "de" } });
    expect(rows[4]!.inputs.get("x")!.shape).toEqual([1, 2]);
    expect([...(rows[4]!.outputs.get("scores")!.elements as Float32Array)]).toEqual([
      ...Float32Array.of(Math.sin(4), Math.cos(4)),
    ]);
    expect(Buffer.from(rows[4]!.outputs.get("echo")!.elements[0] as Uint8Array).toString()).toBe("n4");
    expect(rows[60]).toMatchObject({ id: "bad", error: expect.stringContaining("too large") });
  });

  it("are sampled, rotated by size, redacted and encrypted", async () => {
    expect((await readCapture((await captured({ rate: 0.1 })).files)).length).toBe(6);
    expect((await captured({ maxBytes: 3000 })).files.length).toBeGreaterThan(4);
    const [redacted] = await readCapture((await captured({ redact: ["name", "echo"] })).files);
    expect([[...redacted!.inputs.keys()], [...redacted!.outputs.keys()]]).toEqual([["x"], ["scores"]]);
    const chosen = await captured({
      redact: (one) => (one.parameters.country === "de" ? { ...one, id: "" } : undefined),
    });
    expect((await readCapture(chosen.files)).map(({ id }) => id)).toEqual(new Array(15).fill(""));
    const encrypt = async (file: Uint8Array) => file.map((byte) => byte ^ 0x5a);
    const secret = await captured({ encrypt });
    expect(secret.files[0]).toMatch(/\.parquet\.encrypted$/);
    const plain = join(secret.directory, "plain.parquet");
    await writeFile(plain, await encrypt(await readFile(secret.files[0]!)));
    expect(await readCapture([plain])).toHaveLength(61);
  });

  it("are lost while the disk is full, touch no request, and go on when there is room", async (context) => {
    const directory = await folder();
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", directory]);
    if (mounted.status !== 0) context.skip("this user cannot mount a file system of 256 kB");
    onTestFinished(() => void spawnSync("umount", [directory]));
    const warnings: string[] = [];
    const listen = ({ message }: Error) => warnings.push(message);
    process.on("warning", listen);
    onTestFinished(() => void process.off("warning", listen));
    // A file for each request, so that none waits for others.
    const tracer = capture({ directory, rate: 1, maxBytes: 1 });
    const triton = classifier(1, tracer);
    await triton.ready();
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const name = String(i).padEnd(2000, "n");
        const { echo } = await triton.infer("m", { x: [[i, 1]], name: [[name]] });
        expect(Buffer.from(echo!.data[0] as Uint8Array).toString()).toBe(name);
      }
    };
    await send(200);
    const written = async () => (await readdir(directory)).filter((name) => !name.endsWith(".new")).length;
    await expect.poll(async () => (await written()) + tracer.lostSpans).toBe(200);
    expect(tracer.lostSpans).toBeGreaterThan(20);
    expect(warnings.filter((text) => text.includes("ENOSPC"))).toHaveLength(1);
    const kept = await readdir(directory);
    expect(kept.length).toBeGreaterThan(2);
    for (const name of kept) {
      expect((await readCapture([join(directory, name)])).length).toBeGreaterThan(0);
      await rm(join(directory, name));
    }
    const { lostSpans } = tracer;
    await send(10);
    await triton.close();
    expect(tracer.lostSpans).toBe(lostSpans);
    expect(await readdir(directory)).not.toEqual([]);
  });

  it("are lost when writing fails, and touch no request", async () => {
    const directory = await folder();
    const full = () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    };
    const tracer = capture({ directory, rate: 1, encrypt: full });
    const triton = classifier(1, tracer);
    for (let i = 0; i < 20; i++) await triton.infer("m", { x: [[i, 1]], name: [["n"]] });
    await triton.close();
    expect(tracer.lostSpans).toBe(20);
    expect(await readdir(directory)).toEqual([]);
  });

  it("are lost when the directory vanishes, and the requests are not", async () => {
    const directory = await folder();
    const warned = new Promise<void>((resolve) => {
      const listen = ({ message }: Error) =>
        message.includes("cannot write 1 captured requests") && resolve();
      process.on("warning", listen);
      onTestFinished(() => void process.off("warning", listen));
    });
    const tracer = capture({ directory, rate: 1, maxBytes: 1 });
    const triton = classifier(1, tracer);
    await triton.ready();
    await rm(directory, { recursive: true });
    for (let i = 0; i < 5; i++) await triton.infer("m", { x: [[i, 1]], name: [["a"]] });
    await triton.close();
    await warned;
    expect(tracer.lostSpans).toBe(5);
  });

  it.each([
    [{ rate: 2 }, "option 'rate': expected a number from 0 to 1, got 2"],
    [{ maxBytes: 0 }, "option 'maxBytes'"],
    [{ directory: "/dev/null/x" }, "cannot use the directory of captures"],
    [{ colour: "red" }, "colour"],
  ])("refuse options that are not valid: %j", (options, text) => {
    expect(() => capture({ directory: tmpdir(), ...options } as CaptureOptions)).toThrow(text);
  });
});

describe("tritonjs replay --against compares answers", () => {
  async function served(weight: number): Promise<string> {
    const triton = classifier(weight);
    onTestFinished(() => triton.close());
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    return addresses.http!.url;
  }

  it("of which all are equal against the same version", async () => {
    const { code, output } = await replay(...files, "--against", await served(1), "--compare", "equal");
    expect(output).toContain("m, output scores, all: 60 of 60 agree, 60 are equal, largest difference 0");
    expect(output).toContain("m, output echo, all: 60 of 60 agree");
    expect(code).toBe(0);
  });

  it("and finds a changed weight, by output, tolerance and slice", async () => {
    const url = await served(1.05);
    const found = await replay(...files, "--against", url, "--slice", "parameter:country");
    expect(found.code).toBe(1);
    expect(found.output).toMatch(/output scores, all: \d of 60 agree, \d are equal, largest difference 0.05/);
    expect(found.output).toMatch(/output scores, parameter:country=de: \d of 15 agree/);
    expect(found.output).toContain("output echo, all: 60 of 60 agree");
    expect((await replay(...files, "--against", url, "--relative", "0.1")).code).toBe(0);
  });

  it("of a model repository that runs in process", async () => {
    const redacted = await captured({ redact: ["name", "echo"] }, 20);
    const repository = await folder();
    const { mkdir } = await import("node:fs/promises");
    await mkdir(join(repository, "m", "1"), { recursive: true });
    await writeFile(
      join(repository, "m", "config.pbtxt"),
      'backend: "javascript" max_batch_size: 4\ninput { name: "x" data_type: TYPE_FP32 dims: 2 }\n' +
        'output { name: "scores" data_type: TYPE_FP32 dims: 2 }\n',
    );
    await writeFile(
      join(repository, "m", "1", "model.mjs"),
      'import { batch } from "@tritonjs/core";\nexport default batch(({ x }) => ({ scores: x }));\n',
    );
    const { code, output, errors } = await replay(
      ...redacted.files,
      "--against",
      repository,
      "--compare",
      "equal",
    );
    expect(errors).toBe("");
    expect(output).toContain("m, output scores, all: 20 of 20 agree, 20 are equal");
    // The request that failed when it was captured is answered now.
    expect(output).toContain("request bad: before");
    expect(code).toBe(1);
  });

  it("and refuses what it cannot replay", async () => {
    const bad = join(await folder(), "bad.parquet");
    await writeFile(bad, "not a capture");
    expect((await replay(bad, "--against", "http://localhost:1")).errors).toContain(
      "cannot read the capture",
    );
    expect((await replay(...files, "--against", "/nowhere")).errors).toContain(
      "expected a URL or the directory",
    );
    expect((await replay(...files)).errors).toContain(
      "expected --config for traces, or --against for captures",
    );
    expect((await replay(...files, "--against", "http://localhost:1", "--slice", "user")).errors).toContain(
      "--slice",
    );
    const refused = await replay(...files, "--against", "http://localhost:1");
    expect(refused.code).toBe(1);
    expect(refused.output).toContain("now UNAVAILABLE");
  });
});
