import { setTimeout as sleep } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { type HttpOptions, http, metrics } from "@tritonjs/http";
import { repository as withRepository } from "@tritonjs/repository";
import { afterAll, describe } from "vitest";
import { servedOptions } from "../support/served-options.js";
import { httpDifferences } from "./differences/http-differences.js";
import { repositoryBehaviours } from "./support/behaviours/explicit-models.js";
import { httpBehaviours } from "./support/behaviours/http-models.js";
import { ACCESS_TOKEN } from "./support/http/access.js";
import { compareHttpCase } from "./support/http/compare-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import { type Addresses, type PlayedCase, playHttpCase } from "./support/http/play-case.js";
import { serverOptions } from "./support/http/server-options.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { playedPython } from "./support/played-python.js";
import { quietLogger } from "./support/quiet-logger.js";
import { replay } from "./support/replay.js";
import { RepositoryFolder } from "./support/repository-folder.js";
import { repositoryOptions } from "./support/repository-options.js";
import { bindModels, type RecordedModel, readModels } from "./support/served-models.js";
import { pythonOfModels, repositoryFiles } from "./support/served-repository.js";

const recordedModels = loadJson<Record<string, RecordedModel>>("http/models.json");

/** The models of one of the two repositories. */
const modelsOf = (repository: "explicit" | undefined) =>
  Object.fromEntries(Object.entries(recordedModels).filter(([, model]) => model.repository === repository));

/** The models of the repository that most cases were recorded with. */
const models = readModels(modelsOf(undefined));

/**
 * Replays the recorded HTTP exchanges.
 *
 * @param frontendThreads threads that run the frontend. With one, every third exchange is played
 */
export function replayHttp(frontendThreads = 0): void {
  /** Plays a case about the repository against a repository of its own. */
  async function playOnRepository(recorded: HttpCase): Promise<PlayedCase> {
    const { server_flags: flags = [] } = recorded;
    const folder = await RepositoryFolder.create(repositoryFiles(modelsOf("explicit")));
    const triton = new Triton(
      servedOptions({
        allowModelFileOverride: true,
        modelRepository: folder.path,
        backends: {
          python: playedPython(pythonOfModels(repositoryBehaviours), async (ms) => void (await sleep(ms))),
        },
        ...repositoryOptions(flags),
        security: { accessToken: ACCESS_TOKEN },
        logger: quietLogger,
      }),
    );
    try {
      const { addresses } = await triton.serve({
        frontends: [http({ ...serverOptions(flags), port: 0 })],
        frontendThreads,
      });
      return await playHttpCase(addresses as unknown as Addresses, recorded);
    } finally {
      await triton.close();
      await folder.remove();
    }
  }

  /** All models behind HTTP and metrics ports. */
  async function startServer(options: HttpOptions): Promise<{ triton: Triton; addresses: Addresses }> {
    const triton = new Triton({
      allowClientSharedMemory: true,
      security: { accessToken: ACCESS_TOKEN },
      extensions: [withRepository({ allowModelFileOverride: true })],
    });
    bindModels(triton, models, httpBehaviours);
    const frontends = [http({ ...options, port: 0 }), metrics({ port: 0 })];
    const { addresses } = await triton.serve({ frontends, frontendThreads });
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

    replay<HttpCase, PlayedCase["answers"]>({
      cases: loadLines("http/cases.jsonl"),
      plays: 5,
      every: frontendThreads === 0 ? 1 : 3,
      differences: httpDifferences(models),
      run: async (recorded, intended) => {
        const { answers, faults } =
          recorded.repository === "explicit"
            ? await playOnRepository(recorded)
            : await playHttpCase((await serverFor(recorded)).addresses, recorded);
        return [...faults, ...compareHttpCase(intended(answers), answers)];
      },
    });
  });
}
