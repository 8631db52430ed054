import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { run } from "@tritonjs/cli";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { batch, type InferRequest, type Triton, type TritonOptions } from "@tritonjs/core";
import { type RolloutReport, rollouts } from "@tritonjs/operations/rollout";
import { encodeMessage, inference, inferencePath } from "@tritonjs/protocol/grpc";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { RepositoryFolder } from "../golden/support/repository-folder.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { openTriton } from "./support/open-triton.js";

const X = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
type Request = InferRequest<typeof X>;

const users = Array.from({ length: 16 }, (_, i) => `user-${i}`);

async function serve(options: TritonOptions = {}, frontendThreads = 0) {
  const updates = rollouts();
  const triton = openTriton({ logInfo: false, logWarning: false, ...options, extensions: [updates] });
  for (const modelVersion of [1, 2]) {
    triton.bind({
      modelName: "m",
      modelVersion,
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "version", dtype: "INT32", shape: [1] }],
      inferFunc: batch(({ x }) => ({ version: Array.from({ length: x.shape[0]! }, () => [modelVersion]) })),
      config: { maxBatchSize: 8 },
    });
  }
  const { addresses } = await triton.serve({ frontendThreads });
  const [http, grpc] = [addresses.http!.url, addresses.grpc!.url];
  const clients = { http: new HttpClient(http), grpc: new GrpcClient(grpc) };
  onTestFinished(async () => {
    await clients.http.close();
    await clients.grpc.close();
  });
  return { triton, updates, http, grpc, clients };
}

/** The version that a user gets, as the answer says and as the model does. */
async function versionFor(client: HttpClient | GrpcClient, user: string, modelVersion = ""): Promise<string> {
  const result = await client.infer("m", {
    modelVersion,
    inputs: { x: { datatype: "FP32", shape: [1, 1], data: [1] } },
    headers: { "X-User": user },
  } as never);
  expect(String(result.outputs.version!.data[0])).toBe(result.modelVersion);
  return result.modelVersion;
}

async function ask(
  http: string,
  body?: object,
  headers = {},
): Promise<{ status: number; body: RolloutReport & { error?: string } }> {
  const response = await fetch(`${http}/v2/repository/models/m/rollout`, {
    headers,
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as RolloutReport };
}

describe.each([0, 1])("with %i frontend threads, HTTP and gRPC obey a rollout", (threads) => {
  it("keep the version of a header's key, the same over both, and leave named versions alone", async () => {
    const { updates, clients } = await serve({}, threads);
    const rollout = await updates.start("m", { from: 1, to: 2, share: 50, key: "header:x-user", seed: 3 });
    const first = new Map<string, string>();
    for (const user of users) first.set(user, await versionFor(clients.http, user));
    expect(new Set(first.values())).toEqual(new Set(["1", "2"]));
    for (const user of users) expect(await versionFor(clients.grpc, user)).toBe(first.get(user));
    for (const user of users.slice(0, 5)) expect(await versionFor(clients.http, user, "2")).toBe("2");
    rollout.rollBack();
    for (const user of users.slice(0, 5)) expect(await versionFor(clients.grpc, user)).toBe("1");
    rollout.remove();
    expect(await versionFor(clients.http, "a")).toBe("2");
  });
});

describe("HTTP and gRPC, with a frontend thread", () => {
  it("start, show and change a rollout", async () => {
    const { http, clients } = await serve({}, 1);
    expect(await ask(http)).toMatchObject({ status: 404, body: { error: "model 'm' has no rollout" } });
    expect(await ask(http, { from: 1, to: 2, share: 25 })).toMatchObject({
      status: 200,
      body: { state: "running", share: 25 },
    });
    expect((await ask(http, { from: 1, to: 2 })).body.error).toContain("promote it or roll it back first");
    expect((await ask(http, { share: 120 })).body.error).toContain("expected a percentage from 0 to 100");
    expect((await ask(http, { action: "explode" })).body.error).toContain('expected one of "pause"');
    expect((await ask(http, { to: 2, directory: "/tmp/x" })).body.error).toContain("option 'directory'");
    expect((await ask(http, { share: 100 })).body.share).toBe(100);
    expect(await versionFor(clients.grpc, "a")).toBe("2");
    expect((await ask(http, { action: "rollback" })).body.state).toBe("rolled_back");
    expect(await versionFor(clients.http, "a")).toBe("1");
    expect((await ask(http)).body.verdict.new.requests).toBe(1);
  });
});

it("gRPC starts and reads a rollout with a parameter of RepositoryModelLoad", async () => {
  const { grpc } = await serve();
  const client = new Client(grpc, credentials.createInsecure());
  onTestFinished(() => client.close());
  const load = (request: string) =>
    new Promise<RolloutReport>((resolve, reject) => {
      client
        .makeUnaryRequest(
          inferencePath("RepositoryModelLoad"),
          (value: object) => encodeMessage(inference.RepositoryModelLoadRequest, value),
          (bytes: Buffer) => bytes,
          { modelName: "m", parameters: { rollout: { stringParam: request } } },
          new Metadata(),
          (error) => error && reject(error),
        )
        .on("status", ({ code, metadata }: StatusObject) => {
          const [report] = metadata.get("tritonjs-rollout-bin");
          if (code === 0) resolve(JSON.parse(String(report)) as RolloutReport);
        });
    });
  await expect(load("no JSON")).rejects.toThrow("expected a string_param with a JSON object");
  await expect(load("{}")).rejects.toThrow("model 'm' has no rollout");
  expect(await load('{"from":1,"to":2,"share":10}')).toMatchObject({ share: 10, state: "running" });
  expect(await load('{"action":"promote"}')).toMatchObject({ state: "promoted" });
  expect(await load("{}")).toMatchObject({ share: 100 });
});

describe("no step passes on requests in flight", () => {
  it.each([
    ["HTTP", 0],
    ["gRPC", 1],
    ["streams over HTTP", 1],
  ])("of %s, nor on the answers beside them, with %i frontend threads", async (kind, threads) => {
    const decoupled = kind === "streams over HTTP";
    const updates = rollouts();
    const options = { exitTimeoutSecs: 0, logInfo: false, logWarning: false, extensions: [updates] };
    const triton = openTriton(options);
    let hanging = 0;
    for (const modelVersion of [1, 2]) {
      const answer = async (x: number) => {
        if (modelVersion === 2 && x % 2 === 1) {
          hanging++;
          await new Promise(() => {});
        }
        return { y: [[x]] };
      };
      triton.bind({
        modelName: "m",
        modelVersion,
        inputs: X,
        outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
        inferFunc: (decoupled
          ? async function* ([request]: readonly Request[]) {
              yield [{ y: [[0]] }];
              yield [await answer(request!.inputs.x!.data[0]!)];
            }
          : (requests: readonly Request[]) =>
              Promise.all(requests.map(({ inputs }) => answer(inputs.x!.data[0]!)))) as never,
        config: { maxBatchSize: 1, decoupled, instanceGroup: [{ count: 64, kind: "KIND_CPU" }] },
      });
    }
    const { addresses } = await triton.serve({ frontendThreads: threads });
    const url = addresses.http!.url;
    const grpc = new GrpcClient(addresses.grpc!.url);
    const leaves = new AbortController();
    onTestFinished(async () => {
      leaves.abort();
      await grpc.close();
    });
    const steps = [{ share: 100, forSeconds: 0, minRequests: 21 }];
    await updates.start("m", { from: 1, to: 2, steps });
    const send = async (x: number): Promise<unknown> => {
      const { signal } = leaves;
      const inputs = { x: { datatype: "FP32", shape: [1, 1], data: [x] } } as const;
      if (kind === "gRPC") return grpc.infer("m", { inputs, signal } as never);
      const [action, body] = decoupled
        ? ["generate_stream", { x: [x] }]
        : ["infer", { inputs: [{ name: "x", ...inputs.x }] }];
      const options = { method: "POST", body: JSON.stringify(body), signal };
      return (await fetch(`${url}/v2/models/m/${action}`, options)).text();
    };
    for (let x = 1; x < 40; x += 2) send(x).catch(() => {});
    await expect.poll(() => hanging).toBe(20);
    await Promise.all(Array.from({ length: 20 }, (_, i) => send(2 * i)));
    await send(100);
    const { body } = await ask(url);
    expect(body).toMatchObject({
      state: "running",
      inFlight: 20,
      verdict: { new: { requests: 21, errors: 0 } },
    });
    expect(body.waitsFor).toContain("version 2 has 20 requests in flight, the oldest for ");
    // Their callers leave, which is not an answer either.
    leaves.abort();
    await expect.poll(async () => (await ask(url)).body.inFlight).toBe(0);
    expect((await ask(url)).body).toMatchObject({
      state: "running",
      waitsFor: "the callers of 20 of 41 requests to version 2 left before an answer",
    });
  });
});

it("the routes belong to the restricted group model-repository", async () => {
  const { triton, http } = await serve({ security: { accessToken: "secret" } });
  expect((await ask(http)).status).not.toBe(404);
  expect((await ask(http, { from: 1, to: 2, share: 10 })).body.error).toContain("restricted");
  const headers = { "triton-access-token": serviceOf(triton).accessToken! };
  expect((await ask(http, { from: 1, to: 2, share: 10 }, headers)).status).toBe(200);
  expect((await ask(http, undefined, headers)).body.share).toBe(10);
});

it("the command starts, shows and ends it", async () => {
  const { http } = await serve();
  let [output, errors] = ["", ""];
  const terminal = {
    write: (text: string) => {
      output += text;
    },
    writeError: (text: string) => {
      errors += text;
    },
  };
  const rollout = (...args: string[]) => run(["rollout", ...args, "--url", http], terminal as never);
  expect(await rollout("status", "m")).toBe(1);
  expect(errors).toBe("model 'm' has no rollout\n");
  expect(
    await rollout("start", "m", "from=1", "to=2", "share=30", 'steps=[{"share":1,"forSeconds":9}]'),
  ).toBe(1);
  expect(errors).toContain("has a share and steps");
  expect(await rollout("start", "m", "from=1", "to=2", "share=30")).toBe(0);
  expect(await rollout("share", "m", "60")).toBe(0);
  expect(await rollout("rollback", "m")).toBe(0);
  expect(output).toContain("m: 1 -> 2, running, 60% of the requests, healthy\n  version 1: 0 requests");
  expect(output).toContain("rolled back");
});

describe("a repository", () => {
  const config = (parameters: Readonly<Record<string, string>>) =>
    'backend: "identity"\nversion_policy { all {} }\n' +
    'input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }\noutput { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }\n' +
    Object.entries(parameters)
      .map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }\n`)
      .join("");
  const create = async (parameters: Readonly<Record<string, string>>) => {
    const files = { "m/1/": "", "m/2/": "", "m/config.pbtxt": config(parameters) };
    const folder = await RepositoryFolder.create(files);
    onTestFinished(() => folder.remove());
    return folder;
  };
  const versionIn = async (triton: Triton) => {
    const { name, version } = serviceOf(triton).model("m", "");
    return `${name}/${version}`;
  };

  it("starts the rollout that the parameters of a configuration describe, and says what is wrong with one", async () => {
    const { path } = await create({
      rollout_from: "1",
      rollout_to: "2",
      rollout_share: "0",
      rollout_key: "header:x-user",
    });
    const triton = openTriton({ modelRepository: path, logInfo: false, extensions: [rollouts()] });
    await triton.ready();
    await expect.poll(() => versionIn(triton)).toBe("m/1");
    expect(
      await serviceOf(triton).management![0]!.get!.run({ names: { model: "m" }, body: {} }),
    ).toMatchObject({
      from: 1,
      to: 2,
      share: 0,
    });

    const lines: string[] = [];
    const bad = await create({ rollout_from: "1", rollout_to: "2", rollout_share: "200" });
    const logger = { debug() {}, info() {}, warn() {}, error: (line: string) => lines.push(line) };
    const other = openTriton({ modelRepository: bad.path, logger, extensions: [rollouts()] });
    await other.ready();
    await expect.poll(() => lines.join()).toContain("expected a percentage from 0 to 100, got 200");
    expect(await versionIn(other)).toBe("m/2");
  });

  const start = (path: string, ...args: string[]) => {
    const ports = ["--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false", "--metrics-port=0"];
    const all = ["serve", `--model-repository=${path}`, ...ports, ...args];
    return Program.node(join(repositoryRoot, "packages/cli/dist/main.js"), all, repositoryRoot);
  };
  const urlOf = async (program: Program) => {
    const text = await program.untilOutput("Started Metrics Service", "stderr");
    return `http://${/Started HTTPService at ([\d.]+:\d+)/.exec(text)![1]}`;
  };

  it("is rolled out by the command line, and goes on after a restart", async () => {
    const { path } = await create({});
    const directory = await mkdtemp(join(tmpdir(), "rollouts-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const first = start(path, `--rollout-directory=${directory}`, "--rollout=m:from=1,to=2,share=40");
    const url = await urlOf(first);
    expect((await ask(url)).body).toMatchObject({ from: 1, to: 2, share: 40 });
    expect((await ask(url, { share: 70 })).status).toBe(200);
    first.signal("SIGTERM");
    await first.ended;
    const second = start(path, `--rollout-directory=${directory}`);
    const later = await urlOf(second);
    await expect.poll(async () => (await ask(later)).body.share).toBe(70);
    second.signal("SIGTERM");
    await second.ended;
  });

  it("is rolled out by a configuration that changes while the command serves it", async () => {
    const folder = await create({});
    const program = start(folder.path, "--model-control-mode=explicit", "--load-model=m");
    const url = await urlOf(program);
    expect((await ask(url)).status).toBe(404);
    const parameters = { rollout_from: "1", rollout_to: "2", rollout_share: "30" };
    await folder.write({ "m/config.pbtxt": config(parameters) });
    const loaded = await fetch(`${url}/v2/repository/models/m/load`, { method: "POST" });
    expect(loaded.status).toBe(200);
    await expect.poll(async () => (await ask(url)).body.share).toBe(30);
    program.signal("SIGTERM");
    await program.ended;
  });
});
