import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

let models: RepositoryOnDisk;
beforeAll(async () => {
  models = await RepositoryOnDisk.create({
    "m/config.pbtxt": `backend: "javascript"
      input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
      output [ { name: "y" data_type: TYPE_STRING dims: [ 1 ] } ]`,
    "m/1/model.js": `export default class Echo {
      execute(requests) {
        return requests.map(({ parameters }) => ({ y: [Object.keys(parameters).sort().join(" ")] }));
      }
    }`,
  });
});
afterAll(() => models[Symbol.asyncDispose]());

/** The headers that reach the model of a request over HTTP, whose names are sent in the given case. */
async function overHttp(address: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const sent = request(`http://${address}/v2/models/m/infer`, { method: "POST", headers });
  sent.end(JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [1] }] }));
  const [answer] = await once(sent, "response");
  return ((await json(answer)) as { outputs: { data: string[] }[] }).outputs[0]!.data[0]!;
}

async function overGrpc(address: string, headers: Readonly<Record<string, string>>): Promise<string> {
  using client = new InferenceServerClient(address);
  const result = await client.infer("m", {
    inputs: { x: { datatype: "FP32", shape: [1], data: [1] } },
    headers,
  });
  return new TextDecoder().decode([...result.elements("y", "BYTES")][0]);
}

// gRPC sends names in lower case.
it.each([
  ["my_header.*", "MY_HEADER_b my_header_a", "my_header_a my_header_b"],
  ["MY_HEADER.*", "MY_HEADER_b my_header_a", "my_header_a my_header_b"],
  ["(?-i)my_header.*", "my_header_a", "my_header_a my_header_b"],
  ["(?-i)MY_HEADER.*", "MY_HEADER_b", ""],
])("tritonjs serve forwards the headers that match %s", async (pattern, http, grpc) => {
  const program = Program.node(
    join(repositoryRoot, "packages/cli/dist/main.js"),
    [
      "serve",
      `--model-repository=${models.path}`,
      ...[
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        "--http-port=0",
        "--grpc-port=0",
        "--metrics-port=0",
      ],
      `--http-header-forward-pattern=${pattern}`,
      `--grpc-header-forward-pattern=${pattern}`,
    ],
    repositoryRoot,
  );
  onTestFinished(async () => {
    program.signal("SIGTERM");
    await program.ended;
  });
  const text = await program.untilOutput("Started Metrics Service", "stderr");
  const [, httpAddress = ""] = /Started HTTPService at ([\d.]+:\d+)/.exec(text)!;
  const [, grpcAddress = ""] = /Started GRPCInferenceService at ([\d.]+:\d+)/.exec(text)!;
  const headers = { my_header_a: "1", MY_HEADER_b: "2", other: "3" };
  expect(await overHttp(httpAddress, headers)).toBe(http);
  expect(await overGrpc(grpcAddress, headers)).toBe(grpc);
});
