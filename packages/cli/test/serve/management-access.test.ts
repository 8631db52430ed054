import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, Triton } from "@tritonjs/core";
import { lineLogger } from "@tritonjs/core/internal";
import { repository } from "@tritonjs/repository";
import { describe, expect, it, onTestFinished } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import {
  accessWarning,
  closedGroups,
  type ManagedFrontendName,
  openChosenFrontends,
  openDashboard,
  openOpenAi,
} from "../../src/serve/open-frontends.js";
import { repositorySettings } from "../../src/serve/repository-settings.js";
import { tritonSettings } from "../../src/serve/triton-settings.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

const read = (args: readonly string[]) => readArguments(args, {}).values;
const closed = (place: ManagedFrontendName, ...args: string[]) => closedGroups(read(args), place);

const all = ["model-repository", "shared-memory", "trace", "logging"];
const groups = all.join(",");
const loopback = ["--http-address=127.0.0.1", "--grpc-address=localhost"];
const vertexAi = [
  "--allow-vertex-ai=true",
  "--vertex-ai-predict-route=/predict",
  "--vertex-ai-health-route=/health",
];
const openAi = ["--openai-port=9000", "--model-control-mode=explicit"];

describe("operations that change the server", () => {
  it("are closed on addresses that other machines can reach", () => {
    expect([closed("http"), closed("grpc")]).toEqual([all, all]);
    expect(closed("grpc", "--grpc-address=10.0.0.1")).toEqual(all);
    expect(closed("openai", ...openAi)).toEqual(["model-repository"]);
    expect(closed("vertex-ai", ...vertexAi)).toEqual(["model-repository", "shared-memory"]);
    expect(closed("dashboard", "--dashboard", "--http-address=127.0.0.1", "--metrics-address=::")).toEqual(
      all,
    );
  });

  it.each([
    ["http", ["--http-address=127.0.0.1"]],
    ["http", ["--http-address=::1"]],
    ["grpc", ["--grpc-address=127.8.0.1"]],
    ["grpc", ["--grpc-address=localhost"]],
    ["openai", [...openAi, "--openai-address=localhost"]],
    ["dashboard", ["--dashboard", "--metrics-address=127.0.0.1"]],
    ["vertex-ai", [...vertexAi, "--http-address=127.0.0.1"]],
  ] as const)("are open over %s on loopback addresses: %j", (place, args) => {
    expect(closed(place, ...args)).toEqual([]);
  });

  it("are left to the options that restrict them", () => {
    const some = "--http-restricted-api=model-repository,trace:key=secret";
    expect(closed("http", some)).toEqual(["shared-memory", "logging"]);
    expect(closed("openai", ...openAi, "--openai-api-key=k")).toEqual([]);
    expect(closed("openai", ...openAi, "--openai-restricted-api=model-repository:key=secret")).toEqual([]);
  });

  it("are open everywhere with --compat=triton", () => {
    for (const place of ["http", "grpc", "openai", "dashboard"] as const)
      expect(closed(place, "--compat=triton", "--dashboard", ...openAi)).toEqual([]);
    expect(() => read(["--compat=other"])).toThrow('Bad option: "--compat".\nexpected triton, got other');
  });

  it("need the access token on every address if there is one", () => {
    for (const args of [loopback, ["--compat=triton"], []])
      expect(closed("http", "--access-token=secret", ...args)).toEqual(all);
    for (const args of [loopback, ["--compat=triton"], []])
      expect(closed("vertex-ai", "--access-token=secret", ...vertexAi, ...args)).toEqual([
        "model-repository",
        "shared-memory",
      ]);
  });
});

describe("the log", () => {
  it("says what is closed, and how to open it", () => {
    expect(accessWarning(read([]))).toBe(
      "clients of Triton that use model-repository, shared-memory, trace, logging need --compat=triton: these are closed " +
        "to every client over HTTP on 0.0.0.0 and gRPC on 0.0.0.0; to open them to clients with a secret: set " +
        "TRITONJS_ACCESS_TOKEN, or --http-address=127.0.0.1 or " +
        `--http-restricted-api=${groups}:<header>=<secret>; --grpc-address=127.0.0.1 or ` +
        `--grpc-restricted-protocol=${groups}:<header>=<secret>`,
    );
  });

  it("warns of what --compat=triton opens", () => {
    const args = [
      "--compat=triton",
      "--allow-grpc=false",
      "--http-restricted-api=model-repository,trace,logging:k=v",
    ];
    expect(accessWarning(read(args))).toBe(
      "--compat=triton: other machines can use shared-memory over HTTP on 0.0.0.0; to close them: leave it out, or " +
        "--http-address=127.0.0.1 or --http-restricted-api=shared-memory:<header>=<secret>",
    );
  });

  it.each([
    [loopback],
    [["--allow-http=false", "--grpc-address=127.0.0.1"]],
    [["--access-token=secret"]],
    [[`--http-restricted-api=${groups}:key=secret`, `--grpc-restricted-protocol=${groups}:key=secret`]],
  ])("says nothing where the options decide: %j", (args) => {
    expect(accessWarning(read(args))).toBeUndefined();
  });
});

/** Serves what a command line asks for, on free ports. */
async function serve(...args: string[]) {
  const folder = await TemporaryFolder.create();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--openai-port=0", "--dashboard"];
  const values = read([
    `--model-repository=${folder.path}`,
    ...["--model-control-mode=explicit", ...ports, ...args],
  ]);
  const logger = lineLogger(
    () => {},
    () => "default",
  );
  const triton = new Triton({
    ...tritonSettings(values, logger),
    extensions: [repository(repositorySettings(values))],
  });
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
  const pages = await openDashboard(values);
  const frontends = await openChosenFrontends(values, pages, await openOpenAi(values));
  const { addresses } = await triton.serve({ frontends });
  const at = (name: string) => `127.0.0.1:${addresses[name]!.port}`;
  const clients = (accessToken?: string) => {
    const made = [
      new HttpClient(`http://${at("http")}`, { accessToken }),
      new GrpcClient(at("grpc"), { accessToken }),
    ];
    onTestFinished(() => made.forEach((client) => void client.close()));
    return made;
  };
  const status = async (name: string, path: string, headers = {}, method = "POST") =>
    (await fetch(`http://${at(name)}${path}`, { method, headers })).status;
  return { clients, status };
}

const load = "/v1/models/none/load";
const page = "/dashboard/api/info";
const token = { "triton-access-token": "secret" };

describe("a server of the command line", () => {
  it("refuses operations that change it on all addresses, over every protocol", async () => {
    const { clients, status } = await serve();
    for (const client of [...clients(), ...clients("guess")]) {
      expect(await client.isServerReady()).toBe(true);
      expect(await client.getServerMetadata()).toBeDefined();
      expect(await client.getInferenceStatistics()).toBeDefined();
      for (const ask of [
        () => client.loadModel("none"),
        () => client.getModelRepositoryIndex(),
        () => client.getSystemSharedMemoryStatus(),
        () => client.getLogSettings(),
        () => client.updateTraceSettings({ trace_rate: "1" }),
      ])
        await expect(ask()).rejects.toThrow(
          /is restricted, expecting header '.*triton-access-token' \(start the server with --compat=triton /,
        );
    }
    expect(await status("openai", load)).toBe(403);
    expect(await status("openai", "/v1/models", {}, "GET")).toBe(200);
    expect(await status("metrics", page, {}, "GET")).toBe(403);
    expect(await status("metrics", "/dashboard/v2/repository/models/none/load")).toBe(403);
  });

  it.each([
    [[], undefined, 403],
    [["--access-token=secret"], undefined, 403],
    [["--access-token=secret"], "secret", 200],
    [["--access-token=secret", "--http-address=127.0.0.1"], undefined, 403],
    [["--compat=triton"], undefined, 200],
  ])("guards the redirects of Vertex AI with %j: token %s gets %i", async (args, given, expected) => {
    const { status } = await serve(
      ...vertexAi,
      "--vertex-ai-port=0",
      "--vertex-ai-default-model=double",
      ...args,
    );
    for (const path of ["v2/repository/index", "v2/systemsharedmemory/status"]) {
      const headers = { "X-Vertex-Ai-Triton-Redirect": path, ...(given && { "triton-access-token": given }) };
      expect(await status("vertex-ai", "/predict", headers)).toBe(expected);
    }
    expect(await status("vertex-ai", "/predict", { "X-Vertex-Ai-Triton-Redirect": "v2/models/double" })).toBe(
      200,
    );
  });

  it.each([
    [[], undefined, 200],
    [["--access-token=secret"], undefined, 403],
    [["--access-token=secret"], "secret", 200],
  ])("guards the model routes of SageMaker with %j: token %s gets %i", async (args, given, expected) => {
    const sageMaker = ["--allow-sagemaker=true", "--sagemaker-port=0", "--sagemaker-multi-model"];
    const { status } = await serve(...sageMaker, ...args);
    const headers: Record<string, string> = given === undefined ? {} : { "triton-access-token": given };
    expect(await status("sagemaker", "/models", headers, "GET")).toBe(expected);
    expect(await status("sagemaker", "/ping", {}, "GET")).toBe(200);
  });

  it("accepts them with the access token", async () => {
    const { clients, status } = await serve("--access-token=secret");
    for (const client of clients())
      await expect(client.getLogSettings()).rejects.toThrow(/is restricted, expecting header '[\w-]+'$/);
    for (const client of clients("secret")) {
      expect(await client.getLogSettings()).toBeDefined();
      await expect(client.loadModel("none")).rejects.toThrow("failed to poll");
    }
    // The model does not exist.
    expect(await status("openai", load, token)).toBe(400);
    expect(await status("metrics", page, token, "GET")).toBe(200);
  });

  it("accepts them from everyone with --compat=triton", async () => {
    const { clients, status } = await serve("--compat=triton");
    for (const client of clients()) {
      expect(await client.getLogSettings()).toBeDefined();
      await expect(client.loadModel("none")).rejects.toThrow("failed to poll");
    }
    expect(await status("openai", load)).toBe(400);
    expect(await status("metrics", page, {}, "GET")).toBe(200);
  });
});
