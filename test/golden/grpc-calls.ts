import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "@grpc/grpc-js";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { repository } from "@tritonjs/repository";
import { afterAll, describe } from "vitest";
import { servedOptions } from "../support/served-options.js";
import { grpcDifferences } from "./differences/grpc-differences.js";
import { grpcBehaviours } from "./support/behaviours/grpc-models.js";
import { ACCESS_TOKEN } from "./support/grpc/access.js";
import { connectTo, type UnaryResult } from "./support/grpc/client.js";
import { compareGrpcCase } from "./support/grpc/compare-case.js";
import type { GrpcCase } from "./support/grpc/grpc-case.js";
import { serverOptions } from "./support/grpc/server-options.js";
import { GrpcObjects } from "./support/grpc/shared-memory-objects.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { playedPython } from "./support/played-python.js";
import { quietLogger } from "./support/quiet-logger.js";
import { replay } from "./support/replay.js";
import { RepositoryFolder } from "./support/repository-folder.js";
import { repositoryOptions } from "./support/repository-options.js";
import { bindModels, type RecordedModel, readModels } from "./support/served-models.js";
import { pythonOfModels, repositoryFiles } from "./support/served-repository.js";

interface ModelsFile {
  readonly models: Readonly<Record<string, RecordedModel>>;
  readonly explicit_only_second_repository: Readonly<Record<string, RecordedModel>>;
  readonly servers: Readonly<Record<string, { readonly flags: readonly string[] }>>;
}

const {
  models: recordedModels,
  explicit_only_second_repository: secondModels,
  servers,
} = loadJson<ModelsFile>("grpc/models.json");
const models = readModels(recordedModels);

/**
 * Replays the recorded gRPC calls.
 *
 * @param frontendThreads threads that run the frontend. With one, every third call is played
 */
export function replayGrpc(frontendThreads = 0): void {
  /** All models behind a gRPC port, and its clients. */
  class Server {
    readonly #clients = new Map<string, Client>();
    readonly #folders: RepositoryFolder[] = [];
    readonly #opened: Promise<{ readonly triton: Triton; readonly url: string }>;

    constructor(flags: readonly string[]) {
      this.#opened = this.#open(flags);
    }

    async #open(flags: readonly string[]) {
      const isControlled = flags.includes("--model-control-mode=explicit");
      const triton = isControlled ? await this.#withRepository(flags) : this.#withBoundModels();
      const { addresses } = await triton.serve({
        frontends: [grpc({ ...serverOptions(flags), port: 0 })],
        frontendThreads,
      });
      return { triton, url: addresses.grpc?.url ?? "" };
    }

    #withBoundModels(): Triton {
      const triton = new Triton({
        allowClientSharedMemory: true,
        security: { accessToken: ACCESS_TOKEN },
        extensions: [repository({ allowModelFileOverride: true })],
      });
      bindModels(triton, models, grpcBehaviours);
      return triton;
    }

    /** The models in the folders that they were recorded with. */
    async #withRepository(flags: readonly string[]): Promise<Triton> {
      this.#folders.push(await RepositoryFolder.create(repositoryFiles(recordedModels)));
      const paths = [this.#folders[0]!.path];
      if (flags.some((flag) => flag.startsWith("second --model-repository"))) {
        this.#folders.push(await RepositoryFolder.create(repositoryFiles(secondModels)));
        paths.push(this.#folders[1]!.path);
      }
      if (flags.some((flag) => flag.endsWith("that does not exist"))) paths.push(`${paths[0]}-not-there`);
      const wait = async (ms: number) => void (await sleep(ms));
      return new Triton(
        servedOptions({
          allowModelFileOverride: true,
          modelRepository: paths,
          backends: { python: playedPython(pythonOfModels(grpcBehaviours), wait) },
          ...repositoryOptions(flags),
          allowClientSharedMemory: true,
          security: { accessToken: ACCESS_TOKEN },
          logger: quietLogger,
        }),
      );
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

  describe("recorded gRPC calls", () => {
    const running = new Map<string, Server>();
    const objects = new GrpcObjects();

    afterAll(async () => {
      objects.destroy();
      for (const server of running.values()) await server.close();
    });

    /** One server for all cases that were recorded with one. */
    const serverFor = (profile: string): Server => {
      const server = running.get(profile) ?? new Server(servers[profile]?.flags ?? []);
      running.set(profile, server);
      return server;
    };

    const cases = loadLines<GrpcCase>("grpc/cases.jsonl");
    replay<GrpcCase, UnaryResult | undefined>({
      cases,
      plays: 5,
      every: frontendThreads === 0 ? 1 : 3,
      differences: grpcDifferences(models, cases),
      run: async (recorded, intended) => {
        const client = await serverFor(recorded.server).clientFor(recorded.request_compression);
        const flags = servers[recorded.server]?.flags ?? [];
        return objects.around(recorded, (sent) =>
          compareGrpcCase(sent, { client, objects, flags, intended }),
        );
      },
    });
  });
}
