import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, type Triton } from "@tritonjs/core";
import { expect, onTestFinished, test } from "vitest";
import { remoteBackend, remoteOptionsOf } from "../../src/remote/index.js";
import { DOUBLE, localServer, startReplica } from "./support/replicas.js";

function repository(config: string): string {
  const root = mkdtempSync(join(tmpdir(), "remote-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "far", "1"), { recursive: true });
  writeFileSync(join(root, "far", "config.pbtxt"), config);
  return root;
}

const parameter = (key: string, value: string) =>
  `parameters { key: "${key}" value { string_value: "${value}" } }\n`;

const doubling = (triton: Triton) =>
  void triton.bind({
    ...DOUBLE,
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    config: { maxBatchSize: 8 },
  });

const backends = { remote: remoteBackend };

test("a config.pbtxt names the replicas, and gets the rest from their server", async () => {
  const { grpcUrl } = await startReplica(doubling);
  const modelRepository = repository(
    `backend: "remote"\n${parameter("urls", `${grpcUrl}, ${grpcUrl}`)}${parameter("model_name", "double")}`,
  );
  const triton = localServer({ modelRepository, backends });
  await triton.ready();
  const { y } = await triton.infer("far", { x: [[1, 2]] });
  expect(Array.from((y as unknown as { data: Float32Array }).data)).toEqual([2, 4]);
  expect(triton.service.modelConfig("far", "")).toMatchObject({
    backend: "remote",
    maxBatchSize: 8,
    dynamicBatching: {},
    input: [{ name: "x", dataType: "TYPE_FP32", dims: [2] }],
    output: [{ name: "y", dataType: "TYPE_FP32", dims: [2] }],
  });
});

test("a config.pbtxt that contradicts the server is not loaded", async () => {
  const { grpcUrl } = await startReplica(doubling);
  const modelRepository = repository(
    `backend: "remote"\nmax_batch_size: 16\n${parameter("urls", grpcUrl)}${parameter("model_name", "double")}`,
  );
  const triton = localServer({ modelRepository, backends, exitOnError: false });
  await triton.ready().catch(() => {});
  const [entry] = await triton.service.repositoryIndex(false);
  expect(entry).toMatchObject({
    name: "far",
    state: "UNAVAILABLE",
    reason: expect.stringContaining("configuration specified max_batch_size 16"),
  });
});

test("reads the options from parameters and settings, and names what is wrong", () => {
  const source = (parameters: Readonly<Record<string, string>>, settings = {}) =>
    ({
      name: "far",
      settings,
      config: {
        parameters: Object.fromEntries(
          Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }]),
        ),
      },
    }) as unknown as Parameters<typeof remoteOptionsOf>[0];
  const given = { urls: "http://a:8000,http://b:8000", idempotent: "true", hedge_after_ms: "20" };
  expect(remoteOptionsOf(source(given, { "access-token": "secret" }))).toEqual({
    urls: ["http://a:8000", "http://b:8000"],
    model: "far",
    idempotent: true,
    hedgeAfterMs: 20,
    accessToken: "secret",
  });
  expect(() => remoteOptionsOf(source({}))).toThrow(
    "parameter 'urls' of model 'far': expected addresses of servers",
  );
  expect(() => remoteOptionsOf(source({ ...given, retries: "two" }))).toThrow("expected a number, got 'two'");
  expect(() => remoteOptionsOf(source({ ...given, idempotent: "yes" }))).toThrow(
    "expected true or false, got 'yes'",
  );
});
