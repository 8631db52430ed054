import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromeTrace, readTrace, recordingOf, summarizeTrace, traceSummaryText } from "@tritonjs/perf";
import { type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";

const stamp = (name: string, ns: number) => ({ name, ns });
const TIMES = [
  ...[stamp("REQUEST_START", 1000), stamp("QUEUE_START", 2000), stamp("COMPUTE_START", 3000)],
  ...[stamp("COMPUTE_INPUT_END", 4000), stamp("COMPUTE_OUTPUT_START", 5000), stamp("COMPUTE_END", 6000)],
  ...[stamp("REQUEST_END", 7000), stamp("HTTP_RECV_START", 500), stamp("HTTP_RECV_END", 900)],
];

/** Files of traces, as `tritonjs trace` and `tritonjs replay` read them. */
export function open(): FuzzTarget {
  const path = join(tmpdir(), `tritonjs-fuzz-${process.pid}-trace.json`);
  const trace = (id: number, more: object = {}) => [
    { id, model_name: "m", model_version: 1, request_id: "r", ...more },
    { id, timestamps: TIMES.slice(0, 3) },
    { id, timestamps: TIMES.slice(3) },
    { id, batch: { size: 2, requests: 1, instance: "m_0", cut: "DELAY" } },
    {
      id,
      request: { rows: 2, priority: 1, queue_timeout_us: 5, sequence: { id: "7", start: true, end: false } },
    },
    { id, activity: "TENSOR_QUEUE_INPUT", tensor: { name: "x", data: "1,2", shape: "2", dtype: "FP32" } },
  ];
  return {
    seeds: [trace(1), [...trace(1), ...trace(2, { parent_id: 1 })], []].map((one) =>
      Buffer.from(JSON.stringify(one)),
    ),
    structure: text,
    tokens: [
      ...[
        "id",
        "timestamps",
        "name",
        "ns",
        "model_name",
        "model_version",
        "__proto__",
        "null",
        "[]",
        "{}",
        "-1",
      ],
      ...[
        "REQUEST_START",
        "REQUEST_END",
        "QUEUE_START",
        "COMPUTE_START",
        "COMPUTE_END",
        "GRPC_WAITREAD_START",
        "1e300",
      ],
    ],
    lanes: 1,
    async run(input) {
      writeFileSync(path, input);
      try {
        const requests = await readTrace([path]);
        if (requests.length > 0) {
          traceSummaryText(summarizeTrace(requests));
          JSON.stringify(chromeTrace(requests));
          recordingOf(requests, requests[0]!.modelName);
        }
        return `${Math.min(3, requests.length)} requests`;
      } catch (error) {
        return refusalOf(error);
      }
    },
    close: () => rmSync(path, { force: true }),
  };
}
