import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OptionError } from "../../src/options/option.js";
import { cloudEnvironment, readArguments } from "../../src/options/read-arguments.js";
import { TemporaryFolder } from "../support/temporary-folder.js";

function readValue(argument: string): unknown {
  const name = /^--([^=]+)/.exec(argument)![1]!;
  return (readArguments([argument], {}).values as Record<string, unknown>)[name];
}

function refusal(...args: string[]): string {
  try {
    readArguments(args, {});
    return "accepted";
  } catch (error) {
    if (error instanceof OptionError) return error.message;
    throw error;
  }
}

describe("a valid value", () => {
  it.each<[argument: string, value: unknown]>([
    ["--http-port=80x", 80],
    ["--http-port=+81", 81],
    ["--exit-timeout-secs= 7", 7],
    ["--http-max-input-size=4294967296", 4294967296],
    ["--log-verbose=true", 1],
    ["--log-verbose=False", 0],
    ["--log-info=OFF", false],
    ["--log-info=1", true],
    ["--log-format=ISO8601", "ISO8601"],
    ["--log-format=json", "json"],
    ["--model-control-mode=Poll", "poll"],
    ["--rate-limit=EXECUTION_COUNT", "execution_count"],
    ["--grpc-infer-response-compression-level=High", "high"],
    ["--grpc-infer-thread-count=128", 128],
    ["--min-supported-compute-capability=7.5x", 7.5],
    ["--disable-auto-complete-config", true],
    ["--grpc-reflection", true],
    ["--id=", ""],
    ["--backend-config=default-max-batch-size=8", [{ name: "", key: "default-max-batch-size", value: "8" }]],
    ["--backend-config=onnxruntime,a=b=c", [{ name: "onnxruntime", key: "a", value: "b=c" }]],
    ["--cache-config=local,size=1", [{ name: "local", key: "size", value: "1" }]],
    ["--host-policy=p,numa-node=1", [{ name: "p", key: "numa-node", value: "1" }]],
    ["--metrics-config=summary_latencies=true", [{ name: "", key: "summary_latencies", value: "true" }]],
    ["--rate-limit-resource=R:2", [{ name: "R", count: 2, device: undefined }]],
    ["--rate-limit-resource=R:2:1", [{ name: "R", count: 2, device: 1 }]],
    ["--rate-limit-resource=gpu_Mem:2", [{ name: "gpu_Mem", count: 2, device: undefined }]],
    ["--cuda-memory-pool-byte-size=0:1024", [[0, 1024]]],
    ["--model-load-gpu-limit=1:0.5", [[1, 0.5]]],
    [
      "--http-restricted-api=health,trace:k=v=w",
      [{ groups: ["health", "trace"], header: "k", value: "v=w" }],
    ],
  ])("%s is accepted", (argument, value) => {
    expect(readValue(argument)).toEqual(value);
  });

  it("replaces an earlier one when given again; lists keep all values", () => {
    const { values } = readArguments(
      ["--id=a", "--id", "b", "--model-repository=x", "--model-repository", "y"],
      {},
    );
    expect(values.id).toBe("b");
    expect(values["model-repository"]).toEqual(["x", "y"]);
  });
});

describe("an invalid value", () => {
  it.each<[argument: string, reason: string]>([
    ["--http-port=", "Invalid option value. Got "],
    ["--http-port=99999999999", "Provided option value is out of bound. Got 99999999999"],
    ["--http-max-input-size=0", "Error: --http-max-input-size must be greater than 0."],
    ["--log-info=yes", "invalid value for bool option: yes"],
    ["--log-format=iso", "invalid argument for --log-format"],
    ["--model-control-mode=auto", "invalid argument for --model-control-mode"],
    ["--model-config-name=", "Error: empty argument for --model-config-name"],
    ["--min-supported-compute-capability=x", "Invalid option value. Got x"],
    [
      "--grpc-infer-thread-count=1",
      "invalid argument for --grpc_infer_thread_count. Must be in the range 2 to 128.",
    ],
    ["--grpc-max-concurrent-streams=0", "Error: --grpc-max-concurrent-streams must be greater than 0."],
    ["--grpc-max-session-memory=-1", "Error: --grpc-max-session-memory must be greater than 0."],
    ["--grpc-max-response-pool-size=0", "Error: --grpc-max-response-pool-size must be greater than 0."],
    [
      "--backend-config=,a=b",
      "No backend specified. --backend-config option format is <backend name>,<setting>=<value> or " +
        "<setting>=<value>. Got ,a=b",
    ],
    [
      "--backend-config=b,=c",
      "--backend-config option format is '<backend name>,<setting>=<value>'. Got b,=c",
    ],
    [
      "--cache-config=local,size",
      "--cache-config option format is '<cache name>,<setting>=<value>'. Got local,size",
    ],
    ["--host-policy=a=b", "--host-policy option format is '<policy name>,<setting>=<value>'. Got a=b"],
    ["--metrics-config=x", "--metrics-config option format is <setting>=<value>. Got x"],
    [
      "--rate-limit-resource=R",
      "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or " +
        "'<resource_name>:<count>'. Got R",
    ],
    [
      "--http-restricted-api=health:k",
      "--http-restricted-api option format is '<config name>:<setting>=<value>'. Got health:k",
    ],
    ...["health", "health:", "health:=v", "health:k=", ":k=v", "health=k:v"].map((text): [string, string] => [
      `--grpc-restricted-protocol=${text}`,
      `--grpc-restricted-protocol option format is '<config name>:<setting>=<value>'. Got ${text}`,
    ]),
    ["--http-restricted-api=health,:k=v", "unknown restricted api '' "],
    [
      "--http-restricted-api=health,trace,health:k=v",
      "restricted api 'health' can not be specified in multiple config groups",
    ],
  ])("%s is rejected", (argument, reason) => {
    const name = /^--([^=]+)/.exec(argument)![1]!;
    expect(refusal(argument)).toBe(`Bad option: "--${name}".\n${reason}`);
  });
});

describe("combinations of options", () => {
  it.each<[args: string[], reason: RegExp]>([
    [["--load-model=a"], /requires setting '--model-control-mode=explicit'/],
    [["--cache-config=local,size=1", "--response-cache-byte-size=1"], /Incompatible flags/],
    [
      ["--http-port=1", "--grpc-port=1"],
      /HTTP requests and GRPC requests at the same address and port 0\.0\.0\.0:1$/,
    ],
    [["--metrics-port=8001"], /GRPC requests and metrics requests/],
    [["--http-port=-1"], /port for HTTP: expected 0 to 65535, got -1/],
    [["--host-policy=p,foo=1"], /Unsupported host policy setting 'foo'/],
    [["--model-load-gpu-limit=0:2"], /got 2\.000000/],
    [
      ["--grpc-restricted-protocol=health:a=b", "--grpc-restricted-protocol=health:c=d"],
      /restricted protocol 'health' can not be specified in multiple config groups/,
    ],
  ])("%j are rejected", (args, reason) => {
    expect(refusal(...args)).toMatch(reason);
  });

  it("allow one port at several addresses and any number of ports 0", () => {
    expect(refusal("--http-port=1", "--grpc-port=1", "--grpc-address=::1")).toBe("accepted");
    expect(refusal("--http-port=0", "--grpc-port=0", "--metrics-port=0")).toBe("accepted");
    expect(refusal("--http-port=1", "--grpc-port=1", "--allow-grpc=false")).toBe("accepted");
  });
});

describe("option names", () => {
  it("may be abbreviated when the abbreviation is unambiguous", () => {
    expect(readArguments(["--http-por=7", "--model-rep", "x"], {}).values["http-port"]).toBe(7);
    expect(refusal("--http-p=7")).toBe("accepted");
    expect(refusal("--model-c=x")).toMatch(/^tritonjs: option '--model-c' is ambiguous; possibilities: /);
  });

  it.each<[args: string[], reason: string]>([
    [["--nosuch=1"], "tritonjs: unrecognized option '--nosuch=1'"],
    [["-x"], "tritonjs: unrecognized option '-x'"],
    [["--htp-port=1"], "tritonjs: unrecognized option '--htp-port=1'\nDid you mean '--http-port'?"],
    [
      ["--modelrepository", "x"],
      "tritonjs: unrecognized option '--modelrepository'\nDid you mean '--model-repository'?",
    ],
    [["--http-port"], "tritonjs: option '--http-port' requires an argument"],
    [["--grpc-reflection=1"], "tritonjs: option '--grpc-reflection' doesn't allow an argument"],
    [["extra"], "Unexpected argument: extra"],
  ])("%j are rejected", (args, reason) => {
    expect(refusal(...args)).toBe(reason);
  });
});

describe("warnings", () => {
  it("name each option without effect once, and each renamed option with its new name", () => {
    const args = ["--sagemaker-thread-count=1", "--sagemaker-thread-count=2", "--strict-model-config=true"];
    expect(readArguments(args, {}).warnings).toEqual([
      "Warning: '--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
      "Warning: '--sagemaker-thread-count' has no effect: Node.js serves all connections from its event loop.",
    ]);
  });
});

describe("options from several sources", () => {
  it("are read from the command line, then the environment, then the configuration file", async () => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write(
      "server.json",
      JSON.stringify({ id: "file", "http-port": 1, "grpc-port": 2, "exit-timeout-secs": "3" }),
    );
    const { values } = readArguments(["--id=line", `--config=${config}`], {
      TRITONJS_ID: "environment",
      TRITONJS_HTTP_PORT: "10",
    });
    expect(values).toMatchObject({
      id: "line",
      "http-port": 10,
      "grpc-port": 2,
      "exit-timeout-secs": 3,
      "metrics-port": 8002,
    });
  });

  it("accept several values in a file and in the environment", async () => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write("server.json", JSON.stringify({ "load-model": ["a", "b"] }));
    const { values } = readArguments([], {
      TRITONJS_CONFIG: config,
      TRITONJS_MODEL_REPOSITORY: "x\ny",
      TRITONJS_MODEL_CONTROL_MODE: "explicit",
    });
    expect(values["load-model"]).toEqual(["a", "b"]);
    expect(values["model-repository"]).toEqual(["x", "y"]);
  });

  it("replace all values of a source with lower precedence", async () => {
    const { values } = readArguments(["--model-repository=mine"], { TRITONJS_MODEL_REPOSITORY: "x\ny" });
    expect(values["model-repository"]).toEqual(["mine"]);
  });

  it("list values of an earlier configuration file after those of a later one", async () => {
    await using folder = await TemporaryFolder.create();
    const first = await folder.write("first.json", JSON.stringify({ id: "first", "http-port": 1 }));
    const second = await folder.write("second.json", JSON.stringify({ id: "second" }));
    const { values } = readArguments([`--config=${first}`, `--config=${second}`], {});
    expect(values).toMatchObject({ id: "second", "http-port": 1 });
  });

  it("switch options without a value on and off in a file", async () => {
    await using folder = await TemporaryFolder.create();
    const on = await folder.write("on.json", JSON.stringify({ "grpc-reflection": true }));
    const off = await folder.write("off.json", JSON.stringify({ "grpc-reflection": false }));
    expect(readArguments([`--config=${on}`], {}).values["grpc-reflection"]).toBe(true);
    expect(readArguments([`--config=${off}`], {}).values["grpc-reflection"]).toBe(false);
  });
});

describe("environment variables", () => {
  it("switch options without a value on and off; empty variables are ignored", () => {
    const read = (text: string) =>
      readArguments([], { TRITONJS_GRPC_REFLECTION: text }).values["grpc-reflection"];
    expect([read("1"), read("0"), read("")]).toEqual([true, false, false]);
  });

  it("are rejected for the same reasons as the command line", () => {
    expect(() => readArguments([], { TRITONJS_HTTP_PORT: "x" })).toThrow('Bad option: "--http-port"');
  });
});

describe("a configuration file", () => {
  it.each([
    ["{", /^configuration file '.*': /],
    ["[]", /expected an object of options/],
    ['{"http-prt": 1}', /unknown option 'http-prt'/],
    ['{"config": "x"}', /unknown option 'config'/],
    ['{"id": null}', /option 'id': expected text, a number or a boolean/],
    ['{"http-port": "x"}', /Bad option: "--http-port"\.\nInvalid option value\. Got x/],
  ])("is rejected when it holds %s", async (text, reason) => {
    await using folder = await TemporaryFolder.create();
    const config = await folder.write("server.json", text);
    expect(() => readArguments([`--config=${config}`], {})).toThrow(reason);
  });

  it("is rejected when it does not exist", () => {
    expect(() => readArguments(["--config=/nonexistent.json"], {})).toThrow(/ENOENT/);
  });
});

const absent = join(tmpdir(), "tritonjs-no-model");

describe("cloud environment", () => {
  it("a machine of one's own gets no options", () => {
    expect(cloudEnvironment({ PATH: "/bin", SAGEMAKER_PROJECT: "p" }, false, absent)).toEqual([]);
  });
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
