import { Triton } from "@tritonjs/core";
import { type HttpOptions, http, metrics } from "@tritonjs/http";
import { repository as withRepository } from "@tritonjs/repository";
import { afterAll, describe, vi } from "vitest";
import { hasPython, patientPython, withoutPython } from "../support/python.js";
import { servedOptions } from "../support/served-options.js";
import { httpDifferences } from "./differences/http-differences.js";
import { ACCESS_TOKEN } from "./support/http/access.js";
import { compareHttpCase } from "./support/http/compare-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import { type Addresses, type PlayedCase, playHttpCase } from "./support/http/play-case.js";
import { serverOptions } from "./support/http/server-options.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { quietLogger } from "./support/quiet-logger.js";
import { RecordedRepository } from "./support/recorded-repository.js";
import { replay } from "./support/replay.js";
import { repositoryOptions } from "./support/repository-options.js";
import { type RecordedModel, readModels } from "./support/served-models.js";

const recordedModels = loadJson<Record<string, RecordedModel>>("http/models.json");

/** The models of one of the two repositories. */
const modelsOf = (repository: "explicit" | undefined) =>
  Object.fromEntries(Object.entries(recordedModels).filter(([, model]) => model.repository === repository));

const models = readModels(modelsOf(undefined));

/** Plays a case about the repository against a repository of its own. */
async function playOnRepository(recorded: HttpCase): Promise<PlayedCase> {
  const { server_flags: flags = [] } = recorded;
  const folder = await RecordedRepository.create("http/models-explicit", modelsOf("explicit"));
  const triton = new Triton(
    servedOptions({
      allowModelFileOverride: true,
      backendConfig: patientPython,
      modelRepository: folder.path,
      ...repositoryOptions(flags),
      security: { accessToken: ACCESS_TOKEN },
      logger: quietLogger,
    }),
  );
  try {
    const { addresses } = await triton.serve({ frontends: [http({ ...serverOptions(flags), port: 0 })] });
    return await playHttpCase(addresses as unknown as Addresses, recorded);
  } finally {
    await triton.close();
    await folder.remove();
  }
}

/** The recorded models as they were on disk, in Python processes, behind as many frontends as there were servers. */
class PythonServer {
  readonly #frontends = new Map<string, Promise<Addresses>>();
  readonly #stops: (() => Promise<void>)[] = [];
  #triton: Promise<Triton> | undefined;

  addressesFor({ server_flags: flags = [] }: HttpCase): Promise<Addresses> {
    const options = serverOptions(flags);
    const key = JSON.stringify(options);
    const addresses = this.#frontends.get(key) ?? this.#open(options);
    this.#frontends.set(key, addresses);
    return addresses;
  }

  async #open(options: HttpOptions): Promise<Addresses> {
    this.#triton ??= this.#load();
    const triton = await this.#triton;
    const frontends = [http({ ...options, port: 0 }), metrics({ port: 0 })] as const;
    for (const frontend of frontends) this.#stops.push(() => frontend.stop());
    return { http: await frontends[0].start(triton), metrics: await frontends[1].start(triton) };
  }

  async #load(): Promise<Triton> {
    const folder = await RecordedRepository.create("http/models", modelsOf(undefined));
    const triton = new Triton({
      allowClientSharedMemory: true,
      security: { accessToken: ACCESS_TOKEN },
      logger: quietLogger,
      extensions: [
        withRepository({
          allowModelFileOverride: true,
          backendConfig: patientPython,
          modelRepository: folder.path,
        }),
      ],
    });
    this.#stops.push(
      () => triton.close(),
      () => folder.remove(),
    );
    await triton.ready();
    return triton;
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) await stop();
  }
}

// All models are loaded when the first case needs them.
vi.setConfig({ testTimeout: 600_000 });

describe.skipIf(!hasPython)(`recorded HTTP exchanges with Python models${withoutPython}`, () => {
  const server = new PythonServer();

  afterAll(() => server.close());

  replay<HttpCase, PlayedCase["answers"]>({
    cases: loadLines("http/cases.jsonl"),
    plays: 5,
    every: 3,
    differences: httpDifferences(models).filter(({ onlyCallbacks }) => !onlyCallbacks),
    run: async (recorded, intended) => {
      const { answers, faults } =
        recorded.repository === "explicit"
          ? await playOnRepository(recorded)
          : await playHttpCase(await server.addressesFor(recorded), recorded);
      return [...faults, ...compareHttpCase(intended(answers), answers)];
    },
  });
});
