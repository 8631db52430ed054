import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import type { VirtualClock } from "@tritonjs/testing";
import { expect } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { type ServedOptions, servedOptions } from "../../../test/support/served-options.js";

const named = (agent: string, parameters: Readonly<Record<string, string>> = {}) => {
  const entries = Object.entries(parameters).map(
    ([key, value]) => `parameters { key: "${key}" value: "${value}" }`,
  );
  return identityConfig(`model_repository_agents { agents [ { name: "${agent}" ${entries.join(" ")} } ] }`);
};

/** Serves the model `m`, which names the agent, beside the model `other` without an agent. */
export async function serve(
  agents: Readonly<Record<string, string>>,
  agent: string,
  options: ServedOptions = {},
  more: Readonly<Record<string, string>> = {},
) {
  const journal = await mkdtemp(join(tmpdir(), "agents-"));
  const directory = await RepositoryOnDisk.create(agents);
  const models = await RepositoryOnDisk.create({
    "m/config.pbtxt": named(agent, { journal: join(journal, "actions") }),
    "m/1/": "",
    "other/config.pbtxt": identityConfig(),
    "other/1/": "",
    ...more,
  });
  const lines: string[] = [];
  const take = (line: string) => void lines.push(line);
  const triton = new Triton(
    servedOptions({
      modelRepository: models.path,
      modelControlMode: "explicit",
      loadModel: ["*"],
      exitOnError: false,
      repositoryAgentDirectory: directory.path,
      logger: { error: take, warn: take, info: take, debug() {} },
      ...options,
    }),
  );
  const loaded = triton.ready().catch(() => {});
  return {
    triton,
    lines,
    loaded,
    directory: directory.path,
    models,
    reason: async () =>
      (await serviceOf(triton).repositoryIndex(false)).find(({ name }) => name === "m")!.reason ?? "",
    actions: async () => (await readFile(join(journal, "actions"), "utf8")).trim().split("\n"),
    async [Symbol.asyncDispose]() {
      await triton.close();
      await directory[Symbol.asyncDispose]();
      await models[Symbol.asyncDispose]();
      await rm(journal, { recursive: true });
    },
  };
}

/** The reason why the model has no version when its agent hung for so many seconds on the clock, as often as it is asked. */
export async function reasonAfter(
  { loaded, reason }: Awaited<ReturnType<typeof serve>>,
  clock: VirtualClock,
  seconds: number,
): Promise<string> {
  const isLoaded = loaded.then(() => true);
  await expect
    .poll(async () => {
      await clock.advance(seconds * 1000);
      return Promise.race([isLoaded, Promise.resolve(false)]);
    })
    .toBe(true);
  return reason();
}

/** What the agents of the tests write of a model that is loaded and unloaded. */
export const ALL = [
  "LOAD m identity",
  "LOAD_COMPLETE m identity",
  "UNLOAD m identity",
  "UNLOAD_COMPLETE m identity",
];
