import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelConfig } from "@tritonjs/protocol";
import type { AnalyzeMachine, Candidate, OpenedCandidate } from "../analyze/candidate.js";
import { type RealMeasuring, RepositoryMachine } from "../analyze/served-machines.js";
import type { WrittenVariant } from "./variant-workshop.js";

/** One form of the model under requests of one size. */
export interface VariantLoad {
  readonly variant: string;
  readonly batchSize: number;
}

export const loadKey = ({ variant, batchSize }: VariantLoad) => `${variant}@${batchSize}`;

/**
 * The forms of a model as the candidates of an analysis: each is a model of its own in one repository. A candidate is a
 * form with the rows of its requests, `dynamic-int8@8`, and the parameters of its sessions.
 */
export class VariantMachine implements AnalyzeMachine {
  readonly batchSize = 1;
  readonly #machines = new Map<string, RepositoryMachine>();

  constructor(
    private readonly repository: string,
    private readonly measuring: (batchSize: number) => RealMeasuring,
  ) {}

  get configs(): Readonly<Record<string, ModelConfig>> {
    return Object.fromEntries(
      [...this.#machines].map(([key, { configs }]) => [key, Object.values(configs)[0]!]),
    );
  }

  get loaded(): readonly string[] {
    return [...this.#machines.keys()];
  }

  get wholeMs(): number | undefined {
    const { intervalMs } = this.measuring(1).options;
    return 3 * intervalMs;
  }

  /**
   * Loads a form once, to learn its configuration.
   *
   * @throws TritonError as loading does
   */
  async add(load: VariantLoad): Promise<void> {
    const { variant, batchSize } = load;
    const machine = await RepositoryMachine.open(this.repository, [variant], this.measuring(batchSize));
    this.#machines.set(loadKey(load), machine);
  }

  open(candidate: Candidate): Promise<OpenedCandidate> {
    const [[key, parameters]] = Object.entries(candidate) as [[string, Candidate[string]]];
    const variant = key.slice(0, key.lastIndexOf("@"));
    return this.#machines.get(key)!.open({ [variant]: parameters });
  }

  async close(): Promise<void> {
    for (const machine of this.#machines.values()) await machine.close();
  }
}

/**
 * Adds a form to the repository of the machine: its file by a link, and the least configuration, which loading completes.
 */
export async function addToRepository(
  repository: string,
  { report: { name }, file, parameters = {} }: WrittenVariant,
  maxBatchSize: number,
  link: (from: string, to: string) => Promise<void>,
): Promise<void> {
  const version = join(repository, name, "1");
  await mkdir(version, { recursive: true });
  await link(file!, join(version, "model.onnx"));
  const batching = maxBatchSize > 1 ? "dynamic_batching { }\n" : "";
  const settings = Object.entries(parameters).map(
    ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }\n`,
  );
  const text = `name: "${name}"\nbackend: "onnxruntime"\nmax_batch_size: ${maxBatchSize}\n${batching}${settings.join("")}`;
  await writeFile(join(repository, name, "config.pbtxt"), text);
}
