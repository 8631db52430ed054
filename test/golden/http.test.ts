import { Triton } from "@tritonjs/core";
import { type HttpOptions, http, metrics } from "@tritonjs/http";
import { afterAll, describe } from "vitest";
import { httpBehaviours } from "./support/behaviours/http-models.js";
import { type Addresses, compareHttpCase } from "./support/http/compare-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import { httpSubject } from "./support/http/http-subject.js";
import { serverOptions } from "./support/http/server-options.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { bindModels, type RecordedModel, readModels } from "./support/served-models.js";

/** The models of the repository that most cases were recorded with. */
const models = readModels(
  Object.fromEntries(
    Object.entries(loadJson<Record<string, RecordedModel>>("http/models.json")).filter(
      ([, model]) => model.repository === undefined,
    ),
  ),
);

/** All models behind HTTP and metrics ports. */
async function startServer(options: HttpOptions): Promise<{ triton: Triton; addresses: Addresses }> {
  const triton = new Triton();
  bindModels(triton, models, httpBehaviours);
  const frontends = [http({ ...options, port: 0 }), metrics({ port: 0 })];
  const { addresses } = await triton.serve({ frontends });
  return { triton, addresses: addresses as unknown as Addresses };
}

describe("recorded HTTP exchanges", () => {
  const servers = new Map<string, ReturnType<typeof startServer>>();

  afterAll(async () => {
    for (const server of servers.values()) await (await server).triton.close();
  });

  /** One server for all cases that were recorded with the same options. */
  const serverFor = ({ server_flags: flags = [] }: HttpCase): ReturnType<typeof startServer> => {
    const options = serverOptions(flags);
    const key = JSON.stringify(options);
    const server = servers.get(key) ?? startServer(options);
    servers.set(key, server);
    return server;
  };

  replay<HttpCase>({
    cases: loadLines("http/cases.jsonl"),
    subject: (recorded) => httpSubject(recorded, models),
    run: async (recorded) => compareHttpCase((await serverFor(recorded)).addresses, recorded, models),
  });
});
