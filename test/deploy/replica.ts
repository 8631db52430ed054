import { join } from "node:path";
import { InferenceServerClient } from "@tritonjs/client/http";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";

const command = join(repositoryRoot, "packages/cli/dist/main.js");

const TENSORS =
  'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]';

/** A busy machine may take longer between two steps than the second that Triton's default allows. */
const PATIENT = "max_sequence_idle_microseconds: 60000000";

/**
 * Time of a request in a model: requests are in flight when something happens, and the clients, which send the next one
 * at once, leave the processor to the servers that start.
 */
const MODEL_MS = 30;

/** Doubles its input. */
const DOUBLE = `
export default class Double {
  async execute(requests) {
    await new Promise((resolve) => setTimeout(resolve, ${MODEL_MS}));
    return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => 2 * value) }));
  }
}`;

/** Adds up the inputs of each sequence. */
const SUM = `
const sums = new Map();
export default class Sum {
  async execute(requests) {
    await new Promise((resolve) => setTimeout(resolve, ${MODEL_MS}));
    return requests.map(({ inputs: { x }, sequenceStart, sequenceEnd, correlationId }) => {
      const sum = (sequenceStart ? 0 : sums.get(correlationId)) + x.data[0];
      if (sequenceEnd) sums.delete(correlationId);
      else sums.set(correlationId, sum);
      return { y: [[sum]] };
    });
  }
}`;

/** The ports of a replica, which it keeps when it starts again. */
export interface ReplicaPorts {
  readonly http: number;
  readonly grpc: number;
}

/** A server in a process of its own, with a model that doubles and a model that adds up sequences. */
export class Replica implements AsyncDisposable {
  readonly ports: ReplicaPorts;
  /** A client that goes around the proxy. */
  readonly client: InferenceServerClient;
  readonly #repository: RepositoryOnDisk;
  readonly #flags: readonly string[];
  #program: Program;

  private constructor(repository: RepositoryOnDisk, ports: ReplicaPorts, flags: readonly string[]) {
    this.ports = ports;
    this.client = new InferenceServerClient(`127.0.0.1:${ports.http}`);
    this.#repository = repository;
    this.#flags = flags;
    this.#program = this.#run();
  }

  /** Starts a replica. Resolves when it accepts requests. */
  static async start(ports: ReplicaPorts, ...flags: string[]): Promise<Replica> {
    const repository = await RepositoryOnDisk.create({
      "double/config.pbtxt": `backend: "javascript" max_batch_size: 8 dynamic_batching { } ${TENSORS}`,
      "double/1/model.js": DOUBLE,
      "sum/config.pbtxt": `backend: "javascript" max_batch_size: 8 sequence_batching { ${PATIENT} oldest { } } ${TENSORS}`,
      "sum/1/model.js": SUM,
    });
    const replica = new Replica(repository, ports, flags);
    await replica.#started();
    return replica;
  }

  /** Asks the server to stop, and starts it again when it has. */
  async restart(): Promise<Ended> {
    this.#program.signal("SIGTERM");
    const ended = await this.#program.ended;
    await this.startAgain();
    return ended;
  }

  async startAgain(): Promise<void> {
    this.#program = this.#run();
    await this.#started();
  }

  /** Ends the process without a chance to say anything. */
  async kill(): Promise<void> {
    this.#program.signal("SIGKILL");
    await this.#program.ended;
  }

  /** Puts version 2 of the doubling model into service, in the place of version 1. */
  async loadSecondVersion(): Promise<void> {
    await this.#repository.write({ "double/2/model.js": DOUBLE });
    await this.client.loadModel("double");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    await this.kill();
    await this.#repository[Symbol.asyncDispose]();
  }

  #run(): Program {
    const { http, grpc } = this.ports;
    const all = [
      ...["serve", `--model-repository=${this.#repository.path}`],
      ...["--model-control-mode=explicit", "--load-model=*"],
      ...[
        "--http-address=127.0.0.1",
        "--grpc-address=127.0.0.1",
        `--http-port=${http}`,
        `--grpc-port=${grpc}`,
      ],
      ...["--metrics-port=0", ...this.#flags],
    ];
    return Program.node(command, all, repositoryRoot);
  }

  async #started(): Promise<void> {
    await this.#program.untilOutput("Started Metrics Service", "stderr");
  }
}
