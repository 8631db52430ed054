import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http/fetch";
import { repository } from "@tritonjs/repository";
import { expectThat, type FuzzTarget } from "../engine/target.js";
import { httpMessage } from "../structures/http-message.js";
import { fetchTarget } from "../support/fetch-target.js";
import { V2_TOKENS } from "../support/identity-models.js";

const CONFIG = `backend: "identity"
max_batch_size: 4
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
`;

/** Loading and unloading: names, configurations and files of load requests. Nothing may leave the repository. */
export async function open(): Promise<FuzzTarget> {
  const outer = mkdtempSync(join(tmpdir(), "tritonjs-fuzz-repository-"));
  const path = join(outer, "models");
  for (const name of ["first", "second"]) {
    mkdirSync(join(path, name, "1"), { recursive: true });
    writeFileSync(join(path, name, "config.pbtxt"), CONFIG);
  }
  const logger = { error() {}, warn() {}, info() {}, debug() {} };
  const triton = new Triton({
    logger,
    security: { restrictedEndpoints: [] },
    extensions: [repository({ modelRepository: path, modelControlMode: "explicit" })],
  });
  await triton.serve({ frontends: [] });
  const files = () => readdirSync(outer, { recursive: true }).sort().join("\n");
  const before = files();
  const load = (name: string, parameters: object) =>
    httpMessage(`POST /v2/repository/models/${name}/load`, JSON.stringify({ parameters }));
  const config = {
    backend: "identity",
    max_batch_size: 4,
    input: [{ name: "INPUT0", data_type: "TYPE_FP32", dims: [-1] }],
    output: [{ name: "OUTPUT0", data_type: "TYPE_FP32", dims: [-1] }],
  };
  return fetchTarget({
    open: (onError) => fetchHandler(triton, { onError }),
    seeds: [
      load("first", {}),
      load("second", { config: JSON.stringify(config) }),
      load("first", { config: JSON.stringify(config), "file:1/model.bin": "AAAA" }),
      load("second", {
        config: JSON.stringify({ ...config, instance_group: [{ count: 2, kind: "KIND_CPU" }] }),
      }),
      load("first", {
        config: JSON.stringify({ ...config, dynamic_batching: { max_queue_delay_microseconds: 5 } }),
      }),
      httpMessage("POST /v2/repository/models/first/unload", "{}"),
      httpMessage("POST /v2/repository/index", JSON.stringify({ ready: false })),
      httpMessage("GET /v2/models/first/config"),
    ],
    tokens: [
      ...V2_TOKENS,
      ...[
        "file:../x",
        "file:/tmp/x",
        "file:1/../../x",
        "file:",
        "file:1/model.bin",
        "../first",
        "first",
        "second",
      ],
      ...[
        "config",
        "backend",
        "platform",
        "ensemble",
        "python",
        "onnxruntime",
        "identity",
        "repeat",
        "square",
      ],
      ...[
        "version_policy",
        "sequence_batching",
        "ensemble_scheduling",
        "model_warmup",
        "parameters",
        "labels",
      ],
      ...["default_model_filename", "../../x", "KIND_GPU", "KIND_CPU", "TYPE_FP32", "TYPE_STRING", "count"],
    ],
    check: () => expectThat(files() === before, () => `files changed outside of the models:\n${files()}`),
    async close() {
      await triton.close();
      rmSync(outer, { recursive: true });
    },
  });
}
