import type { Client } from "@grpc/grpc-js";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { afterAll, describe, vi } from "vitest";
import { hasPython, patientPython, withoutPython } from "../support/python.js";
import { servedOptions } from "../support/served-options.js";
import { grpcDifferences } from "./differences/grpc-differences.js";
import { ACCESS_TOKEN } from "./support/grpc/access.js";
import { connectTo, type UnaryResult } from "./support/grpc/client.js";
import { compareGrpcCase } from "./support/grpc/compare-case.js";
import type { GrpcCase } from "./support/grpc/grpc-case.js";
import { serverOptions } from "./support/grpc/server-options.js";
import { GrpcObjects } from "./support/grpc/shared-memory-objects.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { quietLogger } from "./support/quiet-logger.js";
import { RecordedRepository } from "./support/recorded-repository.js";
import { replay } from "./support/replay.js";
import { repositoryOptions } from "./support/repository-options.js";
import { type RecordedModel, readModels } from "./support/served-models.js";

interface ModelsFile {
  readonly models: Readonly<Record<string, RecordedModel>>;
  readonly explicit_only_second_repository: Readonly<Record<string, RecordedModel>>;
  readonly servers: Readonly<Record<string, { readonly flags: readonly string[] }>>;
}

const recording = loadJson<ModelsFile>("grpc/models.json");
const models = readModels(recording.models);

/** The recorded models as they were on disk, in Python processes, behind a gRPC port. */
class PythonServer {
  readonly #clients = new Map<string, Client>();
  readonly #folders: RecordedRepository[] = [];
  readonly #opened: Promise<{ readonly triton: Triton; readonly url: string }>;

  constructor(flags: readonly string[]) {
    this.#opened = this.#open(flags);
  }

  async #open(flags: readonly string[]) {
    this.#folders.push(await RecordedRepository.create("grpc/models", recording.models));
    const paths = [this.#folders[0]!.path];
    if (flags.some((flag) => flag.startsWith("second --model-repository"))) {
      const second = recording.explicit_only_second_repository;
      this.#folders.push(await RecordedRepository.create("grpc/models-second", second));
      paths.push(this.#folders[1]!.path);
    }
    if (flags.some((flag) => flag.endsWith("that does not exist"))) paths.push(`${paths[0]}-not-there`);
    const triton = new Triton(
      servedOptions({
        allowModelFileOverride: true,
        backendConfig: patientPython,
        modelRepository: paths,
        ...repositoryOptions(flags),
        allowClientSharedMemory: true,
        security: { accessToken: ACCESS_TOKEN },
        logger: quietLogger,
      }),
    );
    const { addresses } = await triton.serve({ frontends: [grpc({ ...serverOptions(flags), port: 0 })] });
    return { triton, url: addresses.grpc?.url ?? "" };
  }

  /** A client for each kind of compression. */
  async clientFor(compression: GrpcCase["request_compression"]): Promise<Client> {
    const key = compression ?? "none";
    const client = this.#clients.get(key) ?? connectTo((await this.#opened).url, compression);
    this.#clients.set(key, client);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    await (await this.#opened).triton.close();
    for (const folder of this.#folders) await folder.remove();
  }
}

// All models are loaded when the first case needs them.
vi.setConfig({ testTimeout: 600_000 });

describe.skipIf(!hasPython)(`recorded gRPC calls with Python models${withoutPython}`, () => {
  const running = new Map<string, PythonServer>();
  const objects = new GrpcObjects();

  afterAll(async () => {
    objects.destroy();
    for (const server of running.values()) await server.close();
  });

  /** One server for all cases that were recorded with one. */
  const serverFor = (profile: string): PythonServer => {
    const server = running.get(profile) ?? new PythonServer(recording.servers[profile]?.flags ?? []);
    running.set(profile, server);
    return server;
  };

  const cases = loadLines<GrpcCase>("grpc/cases.jsonl");
  replay<GrpcCase, UnaryResult | undefined>({
    cases,
    plays: 5,
    every: 3,
    differences: grpcDifferences(models, cases).filter(({ onlyCallbacks }) => !onlyCallbacks),
    run: async (recorded, intended) => {
      const client = await serverFor(recorded.server).clientFor(recorded.request_compression);
      const flags = recording.servers[recorded.server]?.flags ?? [];
      return objects.around(recorded, (sent) => compareGrpcCase(sent, { client, objects, flags, intended }));
    },
  });
});
