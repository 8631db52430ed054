import { httpMessage } from "../structures/http-message.js";

const infer = (model: string) => `POST /v2/models/${model}/infer`;
const json = (value: unknown): string => JSON.stringify(value);

const binary = (model: string, header: object, tensors: Uint8Array): Buffer => {
  const head = Buffer.from(json(header));
  const lines = [`inference-header-content-length: ${head.length}`];
  return httpMessage(infer(model), Buffer.concat([head, tensors]), lines);
};

const input = (datatype: string, shape: readonly number[], data: unknown) => ({
  name: "IN",
  datatype,
  shape,
  data,
});

/** Good inferences in all forms. */
export const INFER_SEEDS: readonly Uint8Array[] = [
  httpMessage(infer("fp32"), json({ id: "a", inputs: [input("FP32", [3], [1, -2.5, 3e10])] })),
  httpMessage(infer("int64"), json({ inputs: [input("INT64", [2], [1, -9007199254740991])] })),
  httpMessage(
    infer("uint8"),
    json({
      inputs: [
        input(
          "UINT8",
          [2, 2],
          [
            [1, 2],
            [3, 255],
          ],
        ),
      ],
    }),
  ),
  httpMessage(infer("bool"), json({ inputs: [input("BOOL", [2], [true, false])] })),
  httpMessage(infer("bytes"), json({ inputs: [input("BYTES", [2], ["one", "\u00e9\ud83d\ude00"])] })),
  httpMessage(
    infer("fp32"),
    json({
      parameters: { binary_data_output: true, priority: 1, timeout: 5, text: "x" },
      inputs: [{ ...input("FP32", [1], [1]), parameters: { a: 1, b: "c", d: true } }],
      outputs: [{ name: "OUT", parameters: { binary_data: true } }],
    }),
  ),
  httpMessage(infer("batched"), json({ inputs: [input("FP32", [2, 2], [1, 2, 3, 4])] })),
  httpMessage(
    infer("batched"),
    json({
      inputs: [input("FP32", [1, 2], [1, 2])],
      outputs: [{ name: "OUT", parameters: { classification: 2 } }],
    }),
  ),
  httpMessage(
    infer("sequence"),
    json({
      parameters: { sequence_id: 7, sequence_start: true, sequence_end: true },
      inputs: [input("FP32", [1, 1], [1])],
    }),
  ),
  httpMessage(
    infer("pair"),
    json({
      inputs: [
        { name: "text", datatype: "BYTES", shape: [1], data: ["t"] },
        { name: "flag", datatype: "BOOL", shape: [1], data: [1] },
      ],
    }),
  ),
  binary(
    "fp16",
    { inputs: [{ name: "IN", datatype: "FP16", shape: [2], parameters: { binary_data_size: 4 } }] },
    Buffer.of(0, 0x3c, 0, 0xc0),
  ),
  binary(
    "bytes",
    {
      inputs: [{ name: "IN", datatype: "BYTES", shape: [2], parameters: { binary_data_size: 11 } }],
      outputs: [{ name: "OUT", parameters: { binary_data: true } }],
    },
    Buffer.from([3, 0, 0, 0, 0x61, 0x62, 0x63, 0, 0, 0, 0]),
  ),
  httpMessage(infer("fp32"), Buffer.of(0, 0, 0x80, 0x3f), ["inference-header-content-length: 0"]),
];

/** Good generate requests. */
export const GENERATE_SEEDS: readonly Uint8Array[] = [
  httpMessage("POST /v2/models/pair/generate", json({ id: "g", text: "a text", flag: true, extra: 1 })),
  httpMessage(
    "POST /v2/models/pair/generate_stream",
    json({ text: ["a", "b"], parameters: { flag: [false], p: "q" } }),
  ),
  httpMessage("POST /v2/models/stream/generate_stream", json({ IN: [1, 2, 3] })),
  httpMessage("POST /v2/models/fp32/versions/1/generate", json({ IN: 1.5 })),
  httpMessage("POST /v2/models/int64/generate", json({ IN: [1, -2] })),
];

/** Good requests for data, settings and the repository. */
export const CONTROL_SEEDS: readonly Uint8Array[] = [
  ...[
    "/v2",
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/fp32",
    "/v2/models/fp32/versions/1/config",
  ].map((path) => httpMessage(`GET ${path}`)),
  ...["/v2/models/fp32/ready", "/v2/models/stats", "/v2/models/fp32/stats", "/v2/trace/setting"].map((path) =>
    httpMessage(`GET ${path}`),
  ),
  ...["/v2/systemsharedmemory/status", "/v2/cudasharedmemory/status", "/v2/logging", "/metrics"].map((path) =>
    httpMessage(`GET ${path}`),
  ),
  httpMessage("POST /v2/repository/index", json({ ready: true })),
  httpMessage("POST /v2/repository/models/nothing/load", json({ parameters: { config: "{}" } })),
  httpMessage("POST /v2/repository/models/nothing/unload", json({ parameters: { unload_dependents: true } })),
  httpMessage(
    "POST /v2/trace/setting",
    json({ trace_level: ["OFF"], trace_rate: "1000", trace_count: "-1", log_frequency: "0" }),
  ),
  httpMessage("POST /v2/models/fp32/trace/setting", json({ trace_level: null, trace_rate: null })),
  httpMessage("POST /v2/logging", json({ log_info: false, log_verbose_level: 0, log_format: "default" })),
];

/** Headers of the protocol. */
export const V2_HEADERS: readonly string[] = [
  ...["inference-header-content-length: 10", "content-length: 5", "transfer-encoding: chunked", "host: x"],
  ...[
    "content-encoding: gzip",
    "content-encoding: deflate",
    "accept-encoding: gzip",
    "accept-encoding: deflate",
  ],
  ...[
    "expect: 100-continue",
    "connection: close",
    "connection: upgrade",
    "upgrade: h2c",
    "content-type: text/plain",
  ],
  ...["endpoint-load-metrics-format: text", "endpoint-load-metrics-format: json", "traceparent: 00-1-1-00"],
];
