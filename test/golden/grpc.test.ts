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

describe("recorded gRPC calls", () => {
  const triton = new Triton();
  const clients = new Map<string, Client>();
  let url = "";

  beforeAll(async () => {
    bindModels(triton, models, grpcBehaviours);
    const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
    url = addresses["grpc"]?.url ?? "";
  });

  afterAll(async () => {
    for (const client of clients.values()) client.close();
    await triton.close();
  });

  const clientFor = (compression: GrpcCase["request_compression"]): Client => {
    const key = compression ?? "none";
    const client = clients.get(key) ?? connectTo(url, compression);
    clients.set(key, client);
    return client;
  };

  replay<GrpcCase>({
    cases: loadLines("grpc/cases.jsonl"),
    subject: (recorded) => ({
      area: recorded.area,
      features: featuresNeeded(models, modelsOf(recorded)),
      operations: [recorded.rpc],
      flags: servers[recorded.server]?.flags ?? [],
    }),
    run: (recorded) => compareGrpcCase(clientFor(recorded.request_compression), recorded, models),
  });
});
