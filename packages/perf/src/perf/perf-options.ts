import { Command, Option } from "commander";
import { addOptions, type OptionRow } from "../command/tool-command.js";

const REPEATED = ["inputData", "shape", "header", "requestParameter"];

/** Options by the groups of the help, with perf_analyzer's names. Those at the end of a group are ours. */
const GROUPS: Readonly<Record<string, readonly OptionRow[]>> = {
  "Target:": [
    ["-m, --model-name <name>", "model to measure"],
    ["-x, --model-version <version>", "version of the model; the server chooses unless given"],
    ["-u, --url <address>", "host:port of the server; localhost:8000, for gRPC localhost:8001"],
    ["-i, --protocol <protocol>", "http or grpc", "http"],
    ["--service-kind <kind>", "triton, triton_c_api (in this process) or openai", "triton"],
    ["--model-repository <folder>", "models of --service-kind triton_c_api"],
    ["--module <file>", "module with a Triton as `default` or `triton`, for --service-kind triton_c_api"],
    ["--endpoint <path>", "path of --service-kind openai", "v1/chat/completions"],
    ["--bls-composing-models <names>", "models that the model calls, by commas; the report shows them too"],
    ["-H, --header <header>", "header of each request as 'Name: value'; may be repeated"],
    ["--request-parameter <parameter>", "parameter of each request as name:value:type; may be repeated"],
  ],
  "Load:": [
    [
      "--concurrency-range <range>",
      "requests in flight as start:end:step; an end of 0 needs --latency-threshold",
    ],
    ["--request-rate-range <range>", "requests a second as start:end:step"],
    ["--request-distribution <name>", "gaps between requests: constant or poisson", "constant"],
    ["--request-intervals <file>", "gaps between requests, a line for each, in microseconds"],
    ["--fixed-schedule", "send each entry of --input-data at its `timestamp`, in milliseconds"],
    [
      "--periodic-concurrency-range <range>",
      "requests as start:end:step: `step` more once all of the last ones have the responses of --request-period",
    ],
    ["--request-period <n>", "responses of each request before the next ones are sent", "10"],
    [
      "--session-concurrency <n>",
      "live sessions of --service-kind openai: entries of --input-data with `session_id`, and `delay` in milliseconds",
    ],
    ["--binary-search", "search the range for the highest level within --latency-threshold"],
    ["-l, --latency-threshold <ms>", "limit on the latency: the average, or that of --percentile"],
    ["--max-threads <n>", "threads that send; half of the cores unless given"],
    ["-a, --async", "accepted: requests are always asynchronous"],
    ["--sync", "accepted: requests are always asynchronous"],
    ["--streaming", "gRPC streams, or streamed answers of OpenAI endpoints"],
    ["--concurrency-ramp <ramp>", "concurrency that moves as from:to:time, for instance 1:64:30s"],
    ["--request-rate-ramp <ramp>", "rate that moves as from:to:time"],
    ["--request-rate-spike <spike>", "a rate, then a spike, then the rate again, as rate:peak:time"],
    ["--request-timeout <ms>", "time limit of each request, from its scheduled send"],
    ["--seed <n>", "seed of random data, gaps and sequences", "0"],
  ],
  "Measurement:": [
    ["--measurement-mode <mode>", "time_windows or count_windows", "time_windows"],
    ["-p, --measurement-interval <ms>", "length of a time window", "5000"],
    ["--measurement-request-count <n>", "fewest requests of a count window", "50"],
    ["-s, --stability-percentage <percent>", "largest difference of the last 3 windows", "10"],
    ["--percentile <n>", "percentile that must be stable, instead of the average"],
    ["-r, --max-trials <n>", "largest number of windows of a level", "10"],
    ["--warmup-request-count <n>", "requests before the first window", "0"],
    ["--request-count <n>", "measure exactly this number of requests, in one window"],
    ["--goodput <limits>", 'count requests within limits: "time_to_first_token:100 inter_token_latency:20"'],
    ["--assert <conditions>", 'end with exit code 1 unless all hold: "p99<50ms,throughput>1000"'],
  ],
  "Data:": [
    ["-b, --batch-size <n>", "inferences in each request", "1"],
    ["--input-data <source>", "random, zero, a directory, or JSON files; may be repeated"],
    ["--shape <shape>", "shape of an input with variable dimensions as NAME:d1,d2; may be repeated"],
    ["--string-length <n>", "characters of random strings", "128"],
    ["--string-data <text>", "text of all strings"],
    ["--shared-memory <kind>", "none or system", "none"],
    ["--output-shared-memory-size <bytes>", "shared memory of each output", "102400"],
    ["--input-tensor-format <format>", "binary or json", "binary"],
    ["--output-tensor-format <format>", "binary or json", "binary"],
    ["--same-data", "send equal random data in all requests"],
  ],
  "Sequences:": [
    ["--num-of-sequences <n>", "live sequences with a request rate", "4"],
    ["--sequence-length <n>", "requests of a sequence; 20, or all steps of --input-data, unless given"],
    ["--sequence-length-variation <percent>", "variation of the length", "20"],
    ["--sequence-id-range <range>", "ids as start:end; from 1 unless given"],
    [
      "--serial-sequences",
      "one request in flight for each sequence with a request rate too; always so without --streaming",
    ],
  ],
  "Connection:": [
    ["--grpc-compression-algorithm <name>", "none, gzip or deflate", "none"],
    ["--request-compression <name>", "none, gzip or deflate; HTTP", "none"],
    ["--response-compression <name>", "none, gzip or deflate; HTTP", "none"],
    ["--ssl-grpc-use-ssl", "encrypt gRPC connections"],
    ["--ssl-grpc-root-certifications-file <file>", "certificates of authorities"],
    ["--ssl-grpc-private-key-file <file>", "key of this client"],
    ["--ssl-grpc-certificate-chain-file <file>", "certificate of this client"],
    ["--ssl-https-verify-peer <0|1>", "check the certificate of the server", "1"],
    ["--ssl-https-verify-host <0|1|2>", "check the host name of the certificate", "2"],
    ["--ssl-https-ca-certificates-file <file>", "certificates of authorities"],
    ["--ssl-https-client-certificate-file <file>", "certificate of this client"],
    ["--ssl-https-private-key-file <file>", "key of this client"],
    ["--triton-server-directory <folder>", "accepted without effect: triton_c_api runs this library"],
  ],
  "Reports:": [
    ["-f, --filename <file>", "CSV file"],
    ["--verbose-csv", "further columns in the CSV file"],
    ["--profile-export-file <file>", "JSON file with every request"],
    ["--collect-metrics", "read the server's metrics page"],
    ["--metrics-url <address>", "address of the metrics page", "localhost:8002/metrics"],
    ["--metrics-interval <ms>", "time between two reads of the metrics page", "1000"],
    ["-v, --verbose", "show the generator's overhead"],
    ["--json <file>", "JSON file with all figures"],
    ["--html <file>", "HTML file with plots"],
  ],
};

const EXAMPLES = `
Examples:
  $ tritonjs perf -m resnet --concurrency-range 1:32:4
      measures 1, 5, 9 ... 29 requests in flight
  $ tritonjs perf -m resnet -i grpc --concurrency-range 1:256 --binary-search -l 50 --percentile 99
      finds the highest concurrency with a p99 latency of at most 50 ms
  $ tritonjs perf -m resnet --request-rate-range 500 --request-distribution poisson --assert "p99<50ms,errors==0"
      for a CI: ends with exit code 1 when the latency is higher or a request fails
  $ tritonjs perf -m resnet --service-kind triton_c_api --model-repository models -b 8 --html resnet.html
      measures a model in this process, and writes a report with plots
  $ tritonjs perf -m llama --service-kind openai -u localhost:9000 --streaming --input-data prompts.json \\
      --goodput "time_to_first_token:200 inter_token_latency:30"
  $ tritonjs perf -m llama --service-kind openai -u localhost:9000 --session-concurrency 8 --input-data sessions.json
      plays conversations, 8 at a time; each turn carries the messages and answers before it

Exit codes:
  0    all levels are measured
  1    a condition of --assert does not hold
  2    a level is not stable
  3    no request ended within a window
  99   anything else: options, the server, wrong outputs, or a file of a report
  130  interrupted`;

export function perfOptions(version: string): Command {
  const command = new Command("tritonjs perf")
    .description(
      "Measures the throughput and latency of a model, with the options of Triton's Performance Analyzer.",
    )
    .version(version, "--version")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run 'tritonjs perf --help' for the options.");
  addOptions(command, GROUPS, REPEATED);
  for (const { flags } of UNSUPPORTED) command.addOption(new Option(flags).hideHelp());
  return command;
}

/** Options of perf_analyzer that this command knows and refuses, with what to do instead. `true` takes a value. */
export const UNSUPPORTED: readonly {
  readonly flags: string;
  readonly instead: string;
  /** The only value that is taken. */
  readonly accepted?: string;
}[] = [
  { flags: "-c, --max-concurrency <n>", instead: "use --concurrency-range 1:<n> with --latency-threshold" },
  { flags: "-d, --dynamic-concurrency-mode", instead: "use --concurrency-range with --latency-threshold" },
  { flags: "-t <n>", instead: "use --concurrency-range <n>" },
  { flags: "-z", instead: "use --input-data zero" },
  { flags: "--data-directory <path>", instead: "use --input-data <path>" },
  { flags: "--model-signature-name <name>", instead: "TensorFlow Serving is not supported" },
  {
    flags: "--grpc-method <name>",
    instead: "gRPC methods other than those of the v2 protocol are not supported",
  },
  { flags: "--proto <path>", instead: "gRPC methods other than those of the v2 protocol are not supported" },
  { flags: "--trace-level <level>", instead: "set traces at the server, or with its trace endpoint" },
  { flags: "--trace-rate <n>", instead: "set traces at the server, or with its trace endpoint" },
  { flags: "--trace-count <n>", instead: "set traces at the server, or with its trace endpoint" },
  { flags: "--log-frequency <n>", instead: "set traces at the server, or with its trace endpoint" },
  { flags: "--enable-mpi", instead: "start several commands, and add up what they measure" },
  {
    flags: "--ssl-https-client-certificate-type <type>",
    instead: "certificates are PEM files",
    accepted: "PEM",
  },
  { flags: "--ssl-https-private-key-type <type>", instead: "keys are PEM files", accepted: "PEM" },
];
