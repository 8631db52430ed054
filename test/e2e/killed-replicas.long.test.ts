import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { remote } from "@tritonjs/backends/remote";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { Triton } from "@tritonjs/core";
import { expect, onTestFinished, test } from "vitest";
import { freePorts } from "../support/free-ports.js";
import { repositoryRoot } from "../support/repository.js";

/** Each of the processes starts twice, which takes long on a busy machine. */
const TIMEOUT_MS = 240_000;

const PROGRAM = join(repositoryRoot, "test", "e2e", "support", "replica-program.mjs");

/** A replica in a process of its own, which can be killed and started again on the same port. */
class ReplicaProcess {
  #child: ChildProcess | undefined;
  /** Whether it has answered a request since its last start. */
  hasAnswered = false;

  private constructor(readonly port: number) {}

  static async start(): Promise<ReplicaProcess> {
    const [port] = await freePorts(1);
    const replica = new ReplicaProcess(port!);
    onTestFinished(() => replica.kill());
    await replica.start();
    return replica;
  }

  get url(): string {
    return `grpc://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [PROGRAM, String(this.port), "5"], {
      cwd: repositoryRoot,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    let printed = "";
    this.hasAnswered = false;
    await new Promise<void>((resolve) => {
      child.stdout!.on("data", (part) => {
        printed += part;
        if (printed.includes(".")) resolve();
        if (printed.includes("answered")) this.hasAnswered = true;
      });
    });
    expect(printed).toContain(`port ${this.port}.`);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
}

/** Sends requests from several loops until `signal` aborts, and returns how each ended. */
async function load(infer: (value: number) => Promise<number | undefined>, signal: AbortSignal) {
  const ends: unknown[] = [];
  const loops = Array.from({ length: 8 }, async (_, loop) => {
    for (let i = 0; !signal.aborted; i++) {
      const value = loop * 1000 + (i % 1000);
      ends.push(
        await infer(value).then(
          (doubled) => doubled === 2 * value || doubled,
          // The pause leaves turns of the event loop to the rest of the test, when requests are refused at once.
          (error) => setImmediate(error),
        ),
      );
    }
  });
  await Promise.all(loops);
  return ends;
}

/** Kills one replica after another and starts it again, while requests run. One of them always serves. */
async function killInTurn(replicas: readonly ReplicaProcess[], infer: (value: number) => Promise<unknown>) {
  for (const replica of replicas) {
    await infer(1);
    await replica.kill();
    for (let i = 0; i < 20; i++) await infer(i);
    await replica.start();
    // The next replica is killed once this one is back in use.
    while (!replica.hasAnswered) {
      await infer(1);
      await setImmediate();
    }
  }
}

test("replicas that are killed under load lose no request that may run twice", {
  timeout: TIMEOUT_MS,
}, async () => {
  const replicas = await Promise.all([ReplicaProcess.start(), ReplicaProcess.start()]);
  const triton = new Triton({ exitTimeoutSecs: 0 });
  onTestFinished(() => triton.close());
  const urls = replicas.map(({ url }) => url);
  const inferFunc = await remote({ urls, model: "double", idempotent: true, retries: 5 });
  const model = triton.bind({ modelName: "far", inferFunc });
  const infer = async (value: number) => {
    const { y } = await model.inferSample({ x: [value] });
    return y!.data[0] as number;
  };
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const loaded = load(infer, over.signal);
  await killInTurn(replicas, infer);
  over.abort();
  const ends = await loaded;
  expect(ends.filter((end) => end !== true)).toEqual([]);
  expect(ends.length).toBeGreaterThan(50);
});

test("replicas that are killed under load lose only what they were running", {
  timeout: TIMEOUT_MS,
}, async () => {
  const replicas = await Promise.all([ReplicaProcess.start(), ReplicaProcess.start()]);
  const client = new InferenceServerClient(replicas.map(({ url }) => url));
  onTestFinished(() => client.close());
  const infer = async (value: number) => {
    const inputs = { x: { datatype: "FP32" as const, shape: [1, 1], data: [value] } };
    return (await client.infer("double", { inputs })).elements("y", "FP32")[0];
  };
  const patient = (value: number) => infer(value).catch(() => undefined);
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const loaded = load(infer, over.signal);
  await killInTurn(replicas, patient);
  over.abort();
  const ends = await loaded;
  const failed = ends.filter((end) => end !== true);
  // Eight loops are in flight at each of the two kills, and one request of this test.
  expect(failed.length).toBeLessThanOrEqual(16);
  for (const error of failed)
    expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "CONNECTION_FAILED" });
});
