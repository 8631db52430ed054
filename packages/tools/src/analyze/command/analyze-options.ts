import { Command, Option } from "commander";

type Row = readonly [flags: string, description: string, fallback?: string];

const many = (value: string, before: readonly string[] = []): string[] => [...before, value];

/** Options that may be given more than once. */
const REPEATED = ["constraint", "inputData", "shape"];

/** Options by the groups of the help. Where Model Analyzer has an option, the name is the same. */
const GROUPS: Readonly<Record<string, readonly Row[]>> = {
  "Models:": [
    ["-m, --models <names>", "models to tune, by commas; all of them get load at the same time"],
    ["--model-repository <folder>", "repository of the models"],
    ["--module <file>", "module with a function `createTriton(configs)`, for bound models"],
  ],
  "Goal:": [
    ["--objective <metrics>", "metrics to improve, with weights", "perf_throughput:10"],
    ["--constraint <limit>", 'limit such as "perf_latency_p99<50"; may be repeated'],
    ["--latency-budget <ms>", "limit on perf_latency_p99"],
    ["--min-throughput <n>", "limit on perf_throughput"],
    ["--model-weights <weights>", "weights of several models as name:weight, by commas"],
  ],
  "Search:": [
    ["--search <mode>", "model, quick or brute", "model"],
    ["--verify <n>", "best simulated configurations that are verified by real runs", "3"],
    [
      "--early-exit-enable",
      "brute: end given lists of loads and batches where the throughput no longer rises",
    ],
    ["--budget <time>", "time for the search, for instance 10m"],
    ["--resume", "continue with the measurements of the last run"],
  ],
  "Configurations:": [
    ["--instances <list>", "numbers of instances; 1 to the number of cores, at most 4, unless given"],
    ["--isolation <list>", "where instances run: default, worker, process"],
    ["--max-batch-sizes <list>", "largest batches; powers of two up to 128 unless given; 0 to keep"],
    ["--queue-delays <list>", "queue delays in microseconds; 0,500,2000 unless given"],
    [
      "--preferred-batch-sizes <list>",
      "preferred sizes; + joins sizes of one configuration: 4,8+16; 0 for none",
    ],
    ["--target-latencies <list>", "targets of adaptive batching in ms, 0 for none"],
    ["--threads <list>", "threads of a session of ONNX Runtime, 0 for the default"],
  ],
  "Load:": [
    ["--concurrency-range <range>", "requests in flight as start:end:step"],
    ["--request-rate-range <range>", "requests a second as start:end:step"],
    ["--request-distribution <name>", "gaps between requests: constant or poisson", "poisson"],
    ["-b, --batch-size <n>", "inferences in each request", "1"],
    ["--input-data <source>", "random, zero, a directory, or JSON files; may be repeated"],
    ["--shape <shape>", "shape of an input with variable dimensions as NAME:d1,d2; may be repeated"],
    ["--string-length <n>", "characters of random strings", "128"],
    ["--seed <n>", "seed of random data and gaps", "0"],
  ],
  "Measurement:": [
    ["-p, --measurement-interval <ms>", "length of a time window", "1000"],
    [
      "-s, --stability-percentage <percent>",
      "largest difference of the last 3 windows; not for the search model",
      "10",
    ],
    ["-r, --max-trials <n>", "largest number of windows of a measurement; not for the search model", "6"],
    ["--warmup-request-count <n>", "requests before the first window", "20"],
  ],
  "Reports:": [
    ["-e, --export-path <folder>", "folder of the reports and the checkpoint", "analyze-results"],
    [
      "--output-model-repository-path <folder>",
      "folder of the variants; `models` in the export path unless given",
    ],
    ["--num-configs-per-model <n>", "configurations in the table and in the output", "3"],
  ],
};

const EXAMPLES = `
Examples:
  $ tritonjs analyze --model-repository models -m resnet
      finds the configuration with the highest throughput
  $ tritonjs analyze --model-repository models -m resnet --latency-budget 50 --budget 10m
      the same with a p99 latency of at most 50 ms, in ten minutes
  $ tritonjs analyze --model-repository models -m resnet --request-rate-range 200 --objective perf_latency_p99
      finds the lowest latency for 200 requests a second
  $ tritonjs analyze --model-repository models -m resnet --search brute --instances 1,2 --max-batch-sizes 8,16
      measures every combination
  $ tritonjs analyze --model-repository models -m resnet --search brute --max-batch-sizes 4,8,16,32,64 --early-exit-enable
      the same, but leaves out the larger batches once the throughput no longer rises
  $ tritonjs analyze --model-repository models -m detect,classify --model-weights detect:2,classify:1
      tunes two models that share the machine

Exit codes:
  0    a configuration that meets the constraints is found
  1    no measured configuration meets the constraints
  99   anything else: options, the models, or a file of a report
  130  interrupted`;

/** The command with its options and its help. */
export function analyzeOptions(version: string): Command {
  const command = new Command("tritonjs analyze")
    .description("Finds the configuration of a model that meets a goal, like Triton's Model Analyzer.")
    .version(version, "--version")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run 'tritonjs analyze --help' for the options.");
  for (const [group, rows] of Object.entries(GROUPS)) {
    for (const [flags, description, fallback] of rows) {
      const option = new Option(flags, description).helpGroup(group);
      if (REPEATED.includes(option.attributeName())) option.argParser(many);
      command.addOption(fallback === undefined ? option : option.default(fallback));
    }
  }
  return command;
}

/** Names of all options in the help. */
export function analyzeOptionNames(): string[] {
  return analyzeOptions("").options.flatMap(({ long }) => long ?? []);
}
