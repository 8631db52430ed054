import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http";
import { servedOptions } from "../../../support/served-options.js";
import { cacheOf } from "../cache-of.js";
import { ACCESS_TOKEN } from "../http/access.js";
import type { IndexRow } from "../lifecycle/scenario.js";
import { quietLogger } from "../quiet-logger.js";
import { rateLimitOf } from "../rate-limit-of.js";
import { RepositoryFolder } from "../repository-folder.js";
import { repositoryOptions } from "../repository-options.js";
import { ensembleMembers } from "./ensemble-members.js";
import type { LoadAnswer, LoadCase, PlayedLoad } from "./load-case.js";

/** A backend directory without any backend. */
const BACKENDS = "/nowhere/backends";

/** Loads a recorded model from a repository, and reads everything that the recording has about it. */
export async function playLoad(recorded: LoadCase): Promise<PlayedLoad> {
  const files = Object.fromEntries(
    Object.entries(recorded.files).map(([path, content]) => [`${recorded.model}/${path}`, bytesOf(content)]),
  );
  const others = recorded.other_models === undefined ? {} : ensembleMembers;
  const folder = await RepositoryFolder.create({ ...others, ...files });
  const flags = recorded.server_flags;
  const triton = new Triton(
    servedOptions({
      backendConfig: backendConfigOf(flags),
      backendDirectory: BACKENDS,
      modelControlMode: "explicit",
      modelRepository: folder.path,
      ...repositoryOptions(flags),
      ...rateLimitOf(flags),
      responseCache: cacheOf(flags),
      logger: quietLogger,
      security: { accessToken: ACCESS_TOKEN },
    }),
  );
  try {
    const ask = asker(fetchHandler(triton), folder.path);
    const path = `v2/models/${recorded.model}`;
    const load = await ask("POST", `v2/repository/models/${recorded.model}/load`);
    const index = parsed((await ask("POST", "v2/repository/index")).text) as IndexRow[];
    const config = (await ask("GET", `${path}/config`)).text;
    return {
      load: { status: load.status, body: parsed(load.text) as LoadAnswer["body"] },
      index: index.filter(({ name }) => name === recorded.model),
      index_others: index.filter(({ name }) => name !== recorded.model),
      config: parsed(config),
      config_raw: config,
      metadata: parsed((await ask("GET", path)).text),
      ready: (await ask("GET", `${path}/ready`)).status,
    };
  } finally {
    await triton.close();
    await folder.remove();
  }
}

function asker(handle: (request: Request) => Promise<Response>, repository: string) {
  const headers = { "triton-access-token": ACCESS_TOKEN };
  return async (method: string, path: string): Promise<{ status: number; text: string }> => {
    const response = await handle(new Request(`http://localhost/${path}`, { method, headers }));
    return { status: response.status, text: masked(await response.text(), repository) };
  };
}

function masked(text: string, repository: string): string {
  return text.replaceAll(repository, "<REPO>").replaceAll(BACKENDS, "<BACKENDS>");
}

function parsed(text: string): unknown {
  return text === "" ? "" : JSON.parse(text);
}

function bytesOf(content: string | { readonly base64: string }): string | Uint8Array {
  return typeof content === "string" ? content : Buffer.from(content.base64, "base64");
}

/** `--backend-config=<backend>,<setting>=<value>`. */
function backendConfigOf(flags: readonly string[]): Record<string, Record<string, string>> {
  const config: Record<string, Record<string, string>> = {};
  for (const flag of flags) {
    const match = /^--backend-config=(?:([^,=]+),)?([^=]+)=(.*)$/.exec(flag);
    if (match === null) continue;
    const [, name = "", key = "", value = ""] = match;
    config[name] = { ...config[name], [key]: value };
  }
  return config;
}
