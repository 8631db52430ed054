import { describe, expect, it } from "vitest";
import { OptionError } from "../../src/options/option.js";
import { readArguments } from "../../src/options/read-arguments.js";

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
