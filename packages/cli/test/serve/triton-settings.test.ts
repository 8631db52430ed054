import { type ResponseCache, Tensor } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { RedisDouble } from "../../../../test/support/redis-double.js";
import { readArguments } from "../../src/options/read-arguments.js";
import { repositorySettings } from "../../src/serve/repository-settings.js";
import { tritonSettings } from "../../src/serve/triton-settings.js";

const logger = { error() {}, warn() {}, info() {}, debug() {} };

function settings(...args: string[]) {
  const { values } = readArguments(["--model-repository=models", ...args], {});
  return { ...tritonSettings(values, logger), ...repositorySettings(values) };
}

describe("server settings from the command line", () => {
  it("default to those of tritonserver", () => {
    expect(settings()).toEqual({
      id: "triton",
      exitDelaySecs: 0,
      exitTimeoutSecs: 30,
      logger,
      logVerbose: 0,
      logInfo: true,
      logWarning: true,
      logError: true,
      logFormat: "default",
      modelRepository: ["models"],
      modelControlMode: "none",
      backendDirectory: "/opt/tritonserver/backends",
      repositoryAgentDirectory: "/opt/tritonserver/repoagents",
      repositoryAgentTimeoutSecs: 300,
      repositoryPollSecs: 15,
      loadModel: [],
      disableAutoCompleteConfig: false,
      modelLoadThreadCount: 4,
      modelLoadRetryCount: 0,
      modelNamespacing: false,
      exitOnError: true,
      strictReadiness: true,
      readyWithOlderVersion: false,
      backendConfig: {},
      rateLimit: "off",
      hostPolicies: {},
      allowClientSharedMemory: false,
      allowModelFileOverride: false,
      security: { restrictedEndpoints: [], allowedHosts: [] },
      requestMemory: { maxDecompressions: 2, maxWaitingDecompressions: 1024, maxCompressionRatio: 100 },
      metricsConfig: {},
      allowCpuMetrics: true,
    });
  });

  it.each<[args: string[], expected: object]>([
    [["--model-store=a", "--model-repository=models"], { modelRepository: ["a", "models"] }],
    [["--log-file=x.log", "--log-verbose=2"], { logFile: "x.log", logVerbose: 2 }],
    [["--strict-model-config=true"], { disableAutoCompleteConfig: true }],
    [["--disable-auto-complete-config"], { disableAutoCompleteConfig: true }],
    [["--model-config-name=fast"], { modelConfigName: "fast" }],
    [
      ["--model-control-mode=explicit", "--load-model=a", "--load-model=a", "--load-model=b"],
      { modelControlMode: "explicit", loadModel: ["a", "b"] },
    ],
    [
      ["--repository-poll-secs=-5", "--model-load-thread-count=0", "--model-load-retry-count=-1"],
      { repositoryPollSecs: 1, modelLoadThreadCount: 1, modelLoadRetryCount: 0 },
    ],
    [["--exit-timeout-secs=-1"], { exitTimeoutSecs: 0 }],
    [
      ["--allowed-host=a.example", "--allowed-host=.b.example"],
      { security: { restrictedEndpoints: [], allowedHosts: ["a.example", ".b.example"] } },
    ],
    [
      ["--allowed-host=a.example", "--allowed-host=*"],
      { security: { restrictedEndpoints: [], allowedHosts: true } },
    ],
    [["--allow-model-file-override=1"], { allowModelFileOverride: true }],
    [["--compat=triton"], { allowModelFileOverride: true }],
    [
      [
        ...["--request-memory-byte-size=5000000000", "--max-decompressions=3"],
        ...["--max-waiting-decompressions=0", "--max-compression-ratio=0"],
      ],
      {
        requestMemory: {
          byteSize: 5_000_000_000,
          maxDecompressions: 3,
          maxWaitingDecompressions: 0,
          maxCompressionRatio: 0,
        },
      },
    ],
    [
      [
        "--backend-config=default-max-batch-size=8",
        "--backend-config=onnxruntime,a=1",
        "--backend-config=onnxruntime,b=2",
      ],
      { backendConfig: { "": { "default-max-batch-size": "8" }, onnxruntime: { a: "1", b: "2" } } },
    ],
    [
      ["--rate-limit=execution_count", "--rate-limit-resource=R:3", "--rate-limit-resource=S:1:0"],
      {
        rateLimit: "execution_count",
        rateLimitResources: [
          { name: "R", count: 3, device: undefined },
          { name: "S", count: 1, device: 0 },
        ],
      },
    ],
    [
      ["--host-policy=p,numa-node=1", "--host-policy=p,cpu-cores=0-3"],
      { hostPolicies: { p: { numaNode: "1", cpuCores: "0-3" } } },
    ],
    [["--cache-config=local,size=1024"], { responseCache: { byteSize: 1024 } }],
    [["--response-cache-byte-size=2048"], { responseCache: { byteSize: 2048 } }],
    [
      ["--allow-client-shm=true", "--allow-cpu-metrics=false"],
      { allowClientSharedMemory: true, allowCpuMetrics: false },
    ],
    [
      [
        "--metrics-config=counter_latencies=false",
        "--metrics-config=histogram_latencies=true",
        "--metrics-config=summary_latencies=true",
        "--metrics-config=summary_quantiles=0.5:0.05,0.9:0.01,1.5:0.1",
      ],
      {
        metricsConfig: {
          counterLatencies: false,
          histogramLatencies: true,
          summaryLatencies: true,
          summaryQuantiles: [0.5, 0.9],
        },
      },
    ],
  ])("follow %j", (args, expected) => {
    expect(settings(...args)).toMatchObject(expected);
  });

  it("have no response cache when its size is 0", () => {
    expect(settings("--response-cache-byte-size=0").responseCache).toBeUndefined();
  });

  it.each<[args: string[], reason: string]>([
    [["--cache-config=local,size=x"], "size of the cache: expected a number of bytes, got 'x'"],
    [["--cache-config=local,size=0"], "size of the cache: expected a number of bytes, got '0'"],
    [["--cache-config=local,size=1", "--cache-config=redis,host=x"], "found multiple cache configurations"],
    [
      ["--cache-config=memcached,host=x"],
      "unable to find cache 'memcached': the command has 'local' and 'redis'",
    ],
    [["--substitute=/there/is/no/file"], "--substitute: ENOENT"],
    [["--cache-config=redis,port=1"], "the cache 'redis' needs its host"],
    [["--cache-config=redis,host=x", "--cache-config=redis,hots=y"], "'hots': expected one of host, port,"],
    [
      ["--cache-config=redis,host=x", "--cache-config=redis,ttl_seconds=1h"],
      "ttl_seconds of the cache: expected seconds",
    ],
  ])("reject %j", (args, reason) => {
    expect(() => settings(...args)).toThrow(reason);
  });

  it("keep responses in the Redis that they name", async () => {
    const redis = new RedisDouble();
    const { port } = new URL(await redis.start());
    const cache = settings(
      "--cache-config=redis,host=127.0.0.1",
      `--cache-config=redis,port=${port}`,
      "--cache-config=redis,key_prefix=shop:",
    ).responseCache as ResponseCache;
    const outputs = new Map([["y", Tensor.fromElements("FP32", [1], new Float32Array([7]))]]);
    // A command fails until the connection is open.
    await expect
      .poll(async () => {
        await cache.set("k", outputs, 4);
        return true;
      })
      .toBe(true);
    expect([...redis.entries.keys()]).toEqual(["shop:k"]);
    expect((await cache.get("k"))?.get("y")?.elements).toEqual(new Float32Array([7]));
    await cache.close?.();
    await redis.stop();
  });

  it("require a repository", () => {
    const { values } = readArguments([], {});
    expect(() => repositorySettings(values)).toThrow("--model-repository must be specified");
  });
});
