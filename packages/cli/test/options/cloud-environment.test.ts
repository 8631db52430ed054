import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cloudEnvironment, readArguments } from "../../src/options/read-arguments.js";

const absent = join(tmpdir(), "tritonjs-no-model");

it("a machine of one's own gets no options", () => {
  expect(cloudEnvironment({ PATH: "/bin", SAGEMAKER_PROJECT: "p" }, false, absent)).toEqual([]);
});

describe("Vertex AI", () => {
  const environment = {
    AIP_MODE: "PREDICTION",
    AIP_HTTP_PORT: "8090",
    AIP_STORAGE_URI: "gs://bucket/models",
    AIP_PREDICT_ROUTE: "/p",
    AIP_HEALTH_ROUTE: "/h",
  };

  it("gets its frontend alone, with the platform's port, routes and models", () => {
    const { values, warnings } = readArguments([], environment);
    expect(warnings).toEqual([]);
    expect(values).toMatchObject({
      "allow-vertex-ai": true,
      "allow-http": false,
      "allow-grpc": false,
      "vertex-ai-port": 8090,
      "vertex-ai-predict-route": "/p",
      "vertex-ai-health-route": "/h",
      "model-repository": ["gs://bucket/models"],
    });
  });

  it("gives its port, routes and models without AIP_MODE too, and leaves the other frontends as they are", () => {
    const { AIP_MODE: _, ...variables } = environment;
    const { values } = readArguments(["--allow-vertex-ai=true"], variables);
    expect(values).toMatchObject({
      "allow-http": true,
      "vertex-ai-port": 8090,
      "vertex-ai-predict-route": "/p",
      "vertex-ai-health-route": "/h",
      "model-repository": ["gs://bucket/models"],
    });
  });

  it("comes after the command line", () => {
    const args = ["--allow-http=true", "--model-repository=/models", "--vertex-ai-port=1"];
    expect(readArguments(args, environment).values).toMatchObject({
      "allow-http": true,
      "vertex-ai-port": 1,
      "model-repository": ["/models"],
    });
  });
});

describe("SageMaker", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tritonjs-model-"));
    await mkdir(join(folder, "one", "resnet"), { recursive: true });
    await mkdir(join(folder, "two", "a"), { recursive: true });
    await mkdir(join(folder, "two", "b"));
    await mkdir(join(folder, "none"));
    await mkdir(join(folder, "flat"));
    await writeFile(join(folder, "flat", "config.pbtxt"), "");
  });
  afterAll(() => rm(folder, { recursive: true }));

  const options = (environment: NodeJS.ProcessEnv, directory: string) =>
    Object.fromEntries(cloudEnvironment(environment, false, join(folder, directory)));

  it("serves the only model of its directory", () => {
    expect(options({}, "one")).toEqual({
      "allow-sagemaker": "true",
      "allow-http": "false",
      "allow-grpc": "false",
      "allow-metrics": "false",
      "model-control-mode": "explicit",
      "model-namespacing": "true",
      "sagemaker-ping-mode": "ready",
      "model-repository": join(folder, "one"),
      "load-model": "resnet",
      "sagemaker-default-model": "resnet",
    });
  });

  it("does not count where another repository is named", () => {
    expect(cloudEnvironment({ SAGEMAKER_BIND_TO_PORT: "1" }, true, join(folder, "one"))).toEqual([]);
  });

  it("names the default model, the operation and the ping of another repository too", () => {
    const environment = {
      SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "b",
      SAGEMAKER_TRITON_INFERENCE_TYPE: "generate",
      SAGEMAKER_TRITON_PING_MODE: "live",
    };
    const args = ["--allow-sagemaker=true", "--model-repository=/models"];
    expect(readArguments(args, environment).values).toMatchObject({
      "allow-http": true,
      "model-repository": ["/models"],
      "sagemaker-default-model": "b",
      "sagemaker-inference-type": "generate",
      "sagemaker-ping-mode": "live",
    });
  });

  it("passes on the variables of Triton's image", () => {
    const environment = {
      SAGEMAKER_BIND_TO_PORT: "8081",
      SAGEMAKER_SAFE_PORT_RANGE: "9000-9010",
      SAGEMAKER_TRITON_ALLOW_METRICS: "true",
      SAGEMAKER_TRITON_METRICS_PORT: "9001",
      SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "b",
      SAGEMAKER_TRITON_INFERENCE_TYPE: "generate",
      SAGEMAKER_TRITON_OVERRIDE_PING_MODE: "live",
      SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--id=x --exit-timeout-secs=5",
    };
    expect(options(environment, "two")).toMatchObject({
      "sagemaker-port": "8081",
      "sagemaker-safe-port-range": "9000-9010",
      "allow-metrics": "true",
      "metrics-port": "9001",
      "load-model": "b",
      "sagemaker-inference-type": "generate",
      "sagemaker-ping-mode": "live",
      id: "x",
      "exit-timeout-secs": "5",
    });
  });

  it("gets the routes of multi-model endpoints, and no repository", () => {
    const { values } = readArguments([], { SAGEMAKER_MULTI_MODEL: "true" });
    expect(values).toMatchObject({
      "sagemaker-multi-model": true,
      "sagemaker-ping-mode": "live",
      "model-control-mode": "explicit",
      "model-repository": [],
    });
  });

  it.each([
    ["two", {}, "More than 1 model directory found"],
    ["none", {}, "No model found in model repository"],
    ["flat", {}, "Incorrect directory structure."],
    [
      "one",
      { SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "x" },
      "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME x does not exist",
    ],
    ["one", { SAGEMAKER_TRITON_ADDITIONAL_ARGS: "x" }, "Unexpected argument: x"],
  ])("refuses the directory %j with the environment %j", (directory, environment, reason) => {
    expect(() => options(environment, directory)).toThrow(reason);
  });

  it("refuses further options that do not exist, and ports outside the safe range", () => {
    const multi = { SAGEMAKER_MULTI_MODEL: "true" };
    const bad = { ...multi, SAGEMAKER_TRITON_ADDITIONAL_ARGS: "--no-such-option=1" };
    expect(() => readArguments([], bad)).toThrow("unrecognized option '--no-such-option'");
    const range = {
      ...multi,
      SAGEMAKER_SAFE_PORT_RANGE: "9000-9010",
      SAGEMAKER_TRITON_ALLOW_METRICS: "true",
    };
    expect(() => readArguments([], range)).toThrow(
      "metrics requests at port 8002, allowed port range is [9000, 9010]",
    );
  });
});
