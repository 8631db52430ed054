import type { Client } from "@grpc/grpc-js";
import { Triton } from "@tritonjs/core";
import { type GrpcOptions, grpc } from "@tritonjs/grpc";
import { afterAll, describe } from "vitest";
import { grpcBehaviours } from "./support/behaviours/grpc-models.js";
import { connectTo } from "./support/grpc/client.js";
import { compareGrpcCase } from "./support/grpc/compare-case.js";
import { type GrpcCase, modelsOf } from "./support/grpc/grpc-case.js";
import { serverOptions } from "./support/grpc/server-options.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { bindModels, featuresNeeded, type RecordedModel, readModels } from "./support/served-models.js";

interface ModelsFile {
  readonly models: Readonly<Record<string, RecordedModel>>;
  readonly servers: Readonly<Record<string, { readonly flags: readonly string[] }>>;
}

const { models: recordedModels, servers } = loadJson<ModelsFile>("grpc/models.json");
const models = readModels(recordedModels);

/** All models behind a gRPC port, and its clients. */
class Server {
  readonly #triton = new Triton();
  readonly #clients = new Map<string, Client>();
  readonly #url: Promise<string>;

  constructor(options: GrpcOptions) {
    bindModels(this.#triton, models, grpcBehaviours);
    const serving = this.#triton.serve({ frontends: [grpc({ ...options, port: 0 })] });
    this.#url = serving.then(({ addresses }) => addresses.grpc?.url ?? "");
  }

  /** A client for each kind of compression. */
  async clientFor(compression: GrpcCase["request_compression"]): Promise<Client> {
    const key = compression ?? "none";
    const client = this.#clients.get(key) ?? connectTo(await this.#url, compression);
    this.#clients.set(key, client);
    return client;
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    await this.#triton.close();
  }
}

describe("recorded gRPC calls", () => {
  const running = new Map<string, Server>();

  afterAll(async () => {
    for (const server of running.values()) await server.close();
  });

  /** One server for all cases that were recorded with one. */
  const serverFor = (profile: string): Server => {
    const server = running.get(profile) ?? new Server(serverOptions(servers[profile]?.flags ?? []));
    running.set(profile, server);
    return server;
  };

  replay<GrpcCase>({
    cases: loadLines("grpc/cases.jsonl"),
    subject: (recorded) => ({
      area: recorded.area,
      features: featuresNeeded(models, modelsOf(recorded)),
      operations: [recorded.rpc, `${recorded.rpc}: ${recorded.status?.code}`],
      flags: servers[recorded.server]?.flags ?? [],
    }),
    run: async (recorded) => {
      const client = await serverFor(recorded.server).clientFor(recorded.request_compression);
      return compareGrpcCase(client, recorded, models);
    },
  });
});
