import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../src/options/read-arguments.js";
import { traceSettings } from "../../src/serve/triton-settings.js";

function settings(...args: string[]) {
  return settingsIn({}, ...args);
}

function settingsIn(environment: NodeJS.ProcessEnv, ...args: string[]) {
  const { values, warnings } = readArguments(["--model-repository=models", ...args], {});
  const { options, spans, warnings: more } = traceSettings(values, environment);
  return { options, spans, warnings: [...warnings, ...more] };
}

function refusal(...args: string[]): string {
  try {
    settings(...args);
    return "accepted";
  } catch (error) {
    return (error as Error).message;
  }
}

describe("trace options of the command line", () => {
  it("are read from the line that records for a replay", () => {
    const page = readFileSync(new URL("../../../../docs/performance-tools.md", import.meta.url), "utf8");
    const lines = [...page.matchAll(/^tritonjs serve (.*)$/gm)].map(([, args]) => args!.trim().split(" "));
    expect(lines).toHaveLength(1);
    expect(settings(...lines[0]!)).toMatchObject({
      options: { level: ["TIMESTAMPS"], rate: 1, file: "trace.json" },
      warnings: [],
    });
  });

  it("leave tracing off by default, so that clients can read and change its settings", () => {
    expect(settings()).toEqual({ options: { level: "OFF" }, warnings: [] });
  });

  it.each<[args: string[], expected: object]>([
    [["--trace-config=level=OFF"], { level: "OFF" }],
    [
      ["--trace-config=level=timestamps", "--trace-config=LEVEL=x", "--trace-config=level=TENSORS"],
      { level: ["TIMESTAMPS", "TENSORS"] },
    ],
    [["--trace-config=level=MIN", "--trace-config=level=OFF"], { level: "OFF" }],
    [
      [
        "--trace-config=triton,file=/tmp/t=1.json",
        "--trace-config=Triton,log-frequency=50",
        "--trace-config=rate=100",
        "--trace-config=count=7",
        "--trace-config=mode=TRITON",
      ],
      { level: [], file: "/tmp/t=1.json", logFrequency: 50, rate: 100, count: 7 },
    ],
    [["--trace-config=triton,other=1", "--trace-config=opentelemetry,url=x"], { level: [] }],
  ])("%j are accepted", (args, expected) => {
    expect(settings(...args)).toEqual({ options: expected, spans: undefined, warnings: [] });
  });

  it("may be given with the older flags, each with its warning", () => {
    const args = [
      "--trace-file=f",
      "--trace-level=MAX",
      "--trace-rate=2",
      "--trace-count=3",
      "--trace-log-frequency=4",
    ];
    const { options, warnings } = settings(...args);
    expect(options).toEqual({ level: ["TIMESTAMPS"], rate: 2, count: 3, logFrequency: 4, file: "f" });
    expect(warnings).toEqual(
      [
        ["file", "triton,file=<filepath>"],
        ["level", "level=<OFF|TIMESTAMPS|TENSORS>"],
        ["rate", "rate=<rate value>"],
        ["count", "count=<count value>"],
        ["log-frequency", "triton,log-frequency=<log frequency value>"],
      ].map(
        ([name, setting]) =>
          `Warning: '--trace-${name}' has been deprecated and will be removed in future releases. Please use ` +
          `'--trace-config ${setting} instead.`,
      ),
    );
  });

  it("prefer --trace-config to older flags, with a warning", () => {
    const { options, warnings } = settings(
      "--trace-config=rate=5",
      "--trace-rate=2",
      "--trace-config=triton,file=a",
      "--trace-file=b",
    );
    expect(options).toEqual({ level: [], rate: 5, file: "a" });
    expect(warnings.slice(2)).toEqual([
      "Warning: Overriding deprecated '--trace-rate' in favor of provided rate value in --trace-config!",
      "Warning: Overriding deprecated '--trace-file' in favor of provided file in --trace-config!",
    ]);
  });

  it("send traces to a collector in mode opentelemetry", () => {
    const args = [
      "--trace-config=mode=opentelemetry",
      "--trace-config=level=TIMESTAMPS",
      "--trace-config=opentelemetry,url=http://collector:4318/v1/traces",
      "--trace-config=opentelemetry,resource=service.name=mine",
      "--trace-config=opentelemetry,resource=zone=a=b",
      "--trace-config=opentelemetry,bsp_schedule_delay=100",
      "--trace-file=f",
    ];
    const { options, spans, warnings } = settingsIn(
      { OTEL_BSP_MAX_QUEUE_SIZE: "7", OTEL_BSP_SCHEDULE_DELAY: "9" },
      ...args,
    );
    expect(options).toMatchObject({
      level: ["TIMESTAMPS"],
      mode: "opentelemetry",
      rate: 1000,
      modeSettings: {
        url: "http://collector:4318/v1/traces",
        resource: "service.name=mine",
        bsp_max_queue_size: "7",
        bsp_schedule_delay: "100",
        bsp_max_export_batch_size: "512",
      },
    });
    expect(spans).toEqual({
      url: "http://collector:4318/v1/traces",
      resource: { "service.name": "mine", zone: "a=b" },
      scheduleDelayMs: 100,
      maxQueueSize: 7,
    });
    expect(warnings[1]).toBe(
      "Warning: '--trace-file' is deprecated and will be ignored with opentelemetry tracing mode.",
    );
  });

  it.each<[args: string[], reason: RegExp]>([
    [["--trace-config=x"], /--trace-config option format is '<trace mode>,<setting>=<value>'. Got x/],
    [["--trace-config=,a=b"], /No trace mode specified. --trace-config option format is .*Got ,a=b/],
    [["--trace-config=triton,file="], /option format is '<trace mode>,<setting>=<value>'. Got triton,file=/],
    [["--trace-config=jaeger,url=x"], /invalid value for trace mode option: jaeger. Available options are/],
    [
      ["--trace-config=mode=Zipkin"],
      /Bad option: "--trace-config mode".\ninvalid value for trace mode option: zipkin/,
    ],
    [
      ["--trace-config=level=LOUD"],
      /Bad option: "--trace-config level".\ninvalid value for trace level option: loud/,
    ],
    [["--trace-config=rate=often"], /Bad option: "--trace-config rate".\nInvalid option value. Got often/],
    [["--trace-config=triton,log-frequency=x"], /Bad option: "--trace-config triton,log-frequency"/],
    [
      ["--trace-config=opentelemetry,bsp_max_queue_size=x"],
      /Bad option: "--trace-config opentelemetry,bsp_max_queue_size"/,
    ],
    [
      ["--trace-config=opentelemetry,resource=x"],
      /Bad option: "--trace-config opentelemetry,resource".\nExpected <key>=<value>/,
    ],
    [["--trace-level=LOUD"], /Bad option: "--trace-level".\ninvalid value for trace level option: loud/],
    [["--trace-rate=x"], /Bad option: "--trace-rate".\nInvalid option value. Got x/],
  ])("%j are rejected", (args, reason) => {
    expect(refusal(...args)).toMatch(reason);
  });
});
