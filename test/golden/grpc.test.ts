import type { Client } from "@grpc/grpc-js";
import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { afterAll, beforeAll, describe } from "vitest";
import { grpcBehaviours } from "./support/behaviours/grpc-models.js";
import { connectTo } from "./support/grpc/client.js";
import { compareGrpcCase } from "./support/grpc/compare-case.js";
import { type GrpcCase, modelsOf } from "./support/grpc/grpc-case.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { bindModels, featuresNeeded, type RecordedModel, readModels } from "./support/served-models.js";

interface ModelsFile {
  readonly models: Readonly<Record<string, RecordedModel>>;
  readonly servers: Readonly<Record<string, { readonly flags: readonly string[] }>>;
}

const { models: recordedModels, servers } = loadJson<ModelsFile>("grpc/models.json");
const models = readModels(recordedModels);

/** `--grpc-header-forward-pattern` of the recorded server that had one. */
const FORWARDED = /(my-.*|seq.*|triton_.*|timeout|headers)/;

/** All models behind a gRPC port, and its clients. */
class Server {
  readonly #triton = new Triton();
  readonly #clients = new Map<string, Client>();
  #url = "";

  async start(headerForwardPattern?: RegExp): Promise<void> {
    bindModels(this.#triton, models, grpcBehaviours);
    const { addresses } = await this.#triton.serve({ frontends: [grpc({ port: 0, headerForwardPattern })] });
    this.#url = addresses.grpc?.url ?? "";
  }

  /** A client for each kind of compression. */
  readonly clientFor = (compression: GrpcCase["request_compression"]): Client => {
    const key = compression ?? "none";
    const client = this.#clients.get(key) ?? connectTo(this.#url, compression);
    this.#clients.set(key, client);
    return client;
  };

  async close(): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    await this.#triton.close();
  }
}

describe("recorded gRPC calls", () => {
  const server = new Server();
  const forwarding = new Server();

  beforeAll(() => Promise.all([server.start(), forwarding.start(FORWARDED)]));
  afterAll(() => Promise.all([server.close(), forwarding.close()]));

  replay<GrpcCase>({
    cases: loadLines("grpc/cases.jsonl"),
    subject: (recorded) => ({
      area: recorded.area,
      features: featuresNeeded(models, modelsOf(recorded)),
      operations: [recorded.rpc],
      flags: servers[recorded.server]?.flags ?? [],
    }),
    run: (recorded) => {
      const { clientFor } = recorded.server === "flags" ? forwarding : server;
      return compareGrpcCase(clientFor(recorded.request_compression), recorded, models);
    },
  });
});
