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
