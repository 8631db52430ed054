import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, sequenceState, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Certificates, makeCertificates } from "../../../../test/support/certificates.js";
import { runCommand } from "../support/run-command.js";

let folder: string;
let triton: Triton;
let secure: Triton;
let certificates: Certificates;
let openAi: Server;
const urls = { http: "", grpc: "", openAi: "", https: "", grpcs: "" };

const file = (name: string) => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
  certificates = await makeCertificates();
  await writeFile(file("ca.pem"), certificates.ca);
  triton = new Triton({ security: { restrictedEndpoints: [] }, exitTimeoutSecs: 0.1 });
  secure = new Triton();
  for (const server of [triton, secure]) {
    server.bind({
      modelName: "echo",
      inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
      outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 8 },
    });
  }
  const totals = sequenceState(() => ({ sum: 0 }));
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x }, sequence }) => {
        const total = totals(sequence);
        total.sum += x.data[0]!;
        return { y: [[total.sum]] };
      }),
    config: { sequence: { maxSequenceIdleMicroseconds: 60_000_000 }, instanceGroup: [{ count: 4 }] },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0 }), grpc({ port: 0 })] });
  urls.http = `127.0.0.1:${addresses.http!.port}`;
  urls.grpc = `127.0.0.1:${addresses.grpc!.port}`;
  const { cert, key } = certificates.server;
  const tls = { cert, key };
  const encrypted = await secure.serve({ frontends: [http({ port: 0, tls }), grpc({ port: 0, tls })] });
  urls.https = `https://localhost:${encrypted.addresses.http!.port}`;
  urls.grpcs = `localhost:${encrypted.addresses.grpc!.port}`;
  openAi = createServer((request, response) => {
    request.resume().once("end", () => {
      response.setHeader("content-type", "text/event-stream");
      const token = JSON.stringify({ choices: [{ delta: { content: "w" } }] });
      const usage = JSON.stringify({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } });
      response.end(
        `data: ${token}\n\ndata: ${token}\n\ndata: ${token}\n\ndata: ${usage}\n\ndata: [DONE]\n\n`,
      );
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => openAi.once("listening", resolve));
  urls.openAi = `127.0.0.1:${(openAi.address() as AddressInfo).port}`;
});

afterAll(async () => {
  openAi.closeAllConnections();
  openAi.close();
  await triton.close();
  await secure.close();
  await rm(folder, { recursive: true });
});

/** Successes and failures of a model since the last call. */
const seen = new Map<string, readonly [number, number]>();
function countsOf(model: string): readonly [number, number] {
  const { success, fail } = serviceOf(triton).statistics(model, "")[0]!.inferenceStats;
  const [successes, failures] = seen.get(model) ?? [0, 0];
  seen.set(model, [success.count, fail.count]);
  return [success.count - successes, fail.count - failures];
}

describe("tritonjs perf", () => {
  it.each([
    "--concurrency-range 3",
    "--concurrency-range 3 -i grpc",
    "--concurrency-range 3 -i grpc --streaming",
    "--request-rate-range 2000 --sequence-length 7",
    "--request-rate-range 2000 --num-of-sequences 2 -i grpc",
    "--request-rate-range 2000 --request-distribution poisson -i grpc --streaming",
  ])("sends whole sequences in their order with %s", async (options) => {
    const url = options.includes("grpc") ? urls.grpc : urls.http;
    const { code, output, errors } = await runCommand(`-m sum -u ${url} --request-count 60 ${options}`);
    expect({ code, errors: code === 0 ? "" : errors + output }).toEqual({ code: 0, errors: "" });
    expect(countsOf("sum")).toEqual([60, 0]);
  });

  it("lets the requests in flight finish after the last level, and ends open sequences", async () => {
    const windows = "--measurement-mode count_windows --measurement-request-count 20";
    const args = `-u ${urls.http} --concurrency-range 3 ${windows} -r 3 -s 9999`;
    const json = file("drained.json");
    expect(await runCommand(`-m sum ${args} --json ${json}`)).toMatchObject({ code: 0 });
    const [successes, failures] = countsOf("sum");
    expect(failures).toBe(0);
    const { request_count } = JSON.parse(await readFile(json, "utf8"));
    expect(successes).toBeGreaterThan(request_count.avg);
  });

  it("ends with exit code 99 when outputs differ from validation data", async () => {
    const data = { data: [{ x: [1] }, { x: [2] }], validation_data: [{ y: [1] }, { y: [3] }] };
    await writeFile(file("wrong.json"), JSON.stringify(data));
    const { code, output } = await runCommand(
      `-m echo -u ${urls.http} --input-data ${file("wrong.json")} --request-count 4`,
    );
    expect(code).toBe(99);
    expect(output).toContain("2 x Output doesn't match expected output: 'y': its values differ");
  });

  it("writes given integers as integers into the profile", async () => {
    await writeFile(file("given.json"), JSON.stringify({ data: [{ x: [34] }] }));
    const profile = file("profile.json");
    const line = `-m echo -u ${urls.http} --input-data ${file("given.json")} --request-count 1`;
    expect(await runCommand(`${line} --profile-export-file ${profile}`)).toMatchObject({ code: 0 });
    const text = await readFile(profile, "utf8");
    expect(text).toContain('"request_inputs":{"x":34}');
    expect(text).toContain('"response_outputs":[{"y":34}]');
  });

  it("checks the certificate of a gRPC server", async () => {
    const line = `-m echo -i grpc -u ${urls.grpcs} --request-count 5`;
    const trusting = `${line} --ssl-grpc-root-certifications-file ${file("ca.pem")}`;
    expect(await runCommand(trusting)).toMatchObject({ code: 0 });
    expect(await runCommand(`${line} --ssl-grpc-use-ssl`)).toMatchObject({ code: 99 });
  });

  it("checks the certificate of an HTTPS server unless it is told otherwise", async () => {
    const line = `-m echo -u ${urls.https} --request-count 5`;
    const trusting = `${line} --ssl-https-ca-certificates-file ${file("ca.pem")}`;
    expect(await runCommand(trusting)).toMatchObject({ code: 0 });
    expect(await runCommand(`${line} --ssl-https-verify-peer 0`)).toMatchObject({ code: 0 });
    expect(await runCommand(line)).toMatchObject({ code: 99 });
  });

  it("measures the tokens of an OpenAI endpoint", async () => {
    await writeFile(file("chat.json"), JSON.stringify({ data: [{ payload: [{ messages: [] }] }] }));
    const line = `-m m --service-kind openai --streaming -u ${urls.openAi} --input-data ${file("chat.json")}`;
    const { code, output } = await runCommand(
      `${line} --request-count 6 --goodput time_to_first_token:60000`,
    );
    expect(code).toBe(0);
    expect(output).toContain("Output Sequence Length (tokens): avg 3,");
  });

  it("measures a model of a repository in which another one fails to load", async () => {
    const source = `
      export function autoCompleteConfig(config) {
        config.addInput({ name: "x", dataType: "INT32", dims: [1] });
        config.addOutput({ name: "y", dataType: "INT32", dims: [1] });
      }
      export default (requests) => requests.map(({ inputs: { x } }) => ({ y: x }));`;
    for (const [model, text] of Object.entries({ good: source, broken: 'throw new Error("boom");' })) {
      await mkdir(join(folder, "models", model, "1"), { recursive: true });
      await writeFile(join(folder, "models", model, "1", "model.js"), text);
    }
    const line = `--service-kind triton_c_api --model-repository ${file("models")} --request-count 5`;
    const { code, errors, output } = await runCommand(`-m good ${line}`);
    expect({ code, errors: code === 0 ? "" : errors }).toEqual({ code: 0, errors: "" });
    expect(output).toContain("Request count: 5\n");
    expect(await runCommand(`-m broken ${line}`)).toMatchObject({
      code: 99,
      errors: expect.stringContaining("boom"),
    });
  });
});
