import { join } from "node:path";
import { InferenceServerClient } from "@tritonjs/client/http";
import { onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { type RepositoryFiles, RepositoryOnDisk } from "../support/repository-on-disk.js";

export const command = join(repositoryRoot, "packages/cli/dist/main.js");

const FLOATS =
  'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]';

/** The configuration of a JavaScript model that takes and returns a number. */
export const javascript = (more: string) => `backend: "javascript" ${FLOATS} ${more}`;
export const python = `backend: "python" ${FLOATS}`;
export const IN_A_PROCESS = 'parameters { key: "isolation" value { string_value: "process" } }';

/** Doubles its input; -1 ends its worker. */
export const DOUBLE = `
export default class Double {
  execute(requests) {
    return requests.map(({ inputs: { x } }) => {
      if (x.data[0] === -1) process.exit(70);
      return { y: [2 * x.data[0]] };
    });
  }
}`;

/** A repository for one test. */
export async function repositoryWith(files: RepositoryFiles): Promise<string> {
  const repository = await RepositoryOnDisk.create(files);
  onTestFinished(() => repository[Symbol.asyncDispose]());
  return repository.path;
}

/** Arguments of `tritonjs serve` on free ports of this machine. */
export const serveArguments = (path: string, ...more: readonly string[]) => [
  ...["serve", `--model-repository=${path}`, "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"],
  ...["--http-port=0", "--grpc-port=0", "--metrics-port=0", ...more],
];

/** Starts `tritonjs serve`, which ends with the test. Resolves when it accepts requests. */
export async function startServer(path: string, ...more: readonly string[]) {
  const args = [command, ...serveArguments(path, ...more)];
  const program = new Program(process.execPath, args, { cwd: repositoryRoot, detached: true });
  onTestFinished(async () => {
    program.signalGroup("SIGKILL");
    await program.ended;
  });
  const text = await program.untilOutput("Started Metrics Service", "stderr");
  const address = /Started HTTPService at ([\d.]+:\d+)/.exec(text)![1]!;
  return { program, address, client: clientOf(address) };
}

/** A client that ends with the test. */
export function clientOf(address: string): InferenceServerClient {
  const client = new InferenceServerClient(address);
  onTestFinished(() => client.close());
  return client;
}

/** The answer of a model that takes and returns a number. */
export async function ask(client: InferenceServerClient, model: string, value: number, options = {}) {
  const inputs = { x: { datatype: "FP32" as const, shape: [1], data: [value] } };
  return (await client.infer(model, { inputs, ...options })).elements("y", "FP32")[0];
}
