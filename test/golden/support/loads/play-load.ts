import { Triton } from "@tritonjs/core";
import { fetchHandler } from "@tritonjs/http";
import { cacheOf } from "../cache-of.js";
import { compareValues } from "../compare-values.js";
import { toJsonValue } from "../json-value.js";
import { compareIndex } from "../lifecycle/compare-index.js";
import type { IndexRow } from "../lifecycle/scenario.js";
import { quietLogger } from "../quiet-logger.js";
import { rateLimitOf } from "../rate-limit-of.js";
import { RepositoryFolder } from "../repository-folder.js";
import { repositoryOptions } from "../repository-options.js";
import { ensembleMembers } from "./ensemble-members.js";
import type { LoadCase } from "./load-case.js";

/** Loads a recorded model from a repository, and tells what went another way than recorded. */
export async function playLoad(recorded: LoadCase): Promise<string[]> {
  const files = Object.fromEntries(
    Object.entries(recorded.files).map(([path, content]) => [`${recorded.model}/${path}`, bytesOf(content)]),
  );
  const others = recorded.other_models === undefined ? {} : ensembleMembers;
  const folder = await RepositoryFolder.create({ ...others, ...files });
  const flags = recorded.server_flags;
  const triton = new Triton({
    ...repositoryOptions(flags),
    ...rateLimitOf(flags),
    responseCache: cacheOf(flags),
    backendConfig: backendConfigOf(flags),
    modelControlMode: "explicit",
    modelRepository: folder.path,
    logger: quietLogger,
    gpus: [],
  });
  try {
    const ask = asker(fetchHandler(triton, { restrictions: {} }));
    const path = `v2/models/${recorded.model}`;
    const load = await ask("POST", `v2/repository/models/${recorded.model}/load`);
    const masked = JSON.parse(JSON.stringify(load.body).replaceAll(folder.path, "<REPO>"));
    const differences = compareAnswer("load", recorded.load.body, masked);
    if (load.status !== recorded.load.status) {
      differences.unshift(`load: expected status ${recorded.load.status}, got ${load.status}`);
    }
    const index = (await ask("POST", "v2/repository/index")).body as IndexRow[];
    const own = index.filter(({ name }) => name === recorded.model);
    differences.push(...compareStates(recorded.index, own));
    if (recorded.config !== undefined) {
      differences.push(
        ...compareValues(sorted(recorded.config), sorted((await ask("GET", `${path}/config`)).body)),
      );
    }
    if (recorded.metadata !== undefined) {
      differences.push(...compareValues(sorted(recorded.metadata), sorted((await ask("GET", path)).body)));
    }
    return differences;
  } finally {
    await triton.close();
    await folder.remove();
  }
}

function asker(handle: (request: Request) => Promise<Response>) {
  return async (method: string, path: string): Promise<{ status: number; body: unknown }> => {
    const response = await handle(new Request(`http://localhost/${path}`, { method }));
    const text = await response.text();
    return { status: response.status, body: text === "" ? "" : JSON.parse(text) };
  };
}

/** Error texts of ours may say more than the recorded ones: all that is wrong, one a line. */
function compareAnswer(what: string, expected: unknown, got: unknown): string[] {
  const text = (body: unknown) => String((body as { error?: string }).error ?? body);
  const wanted = text(expected).replace(/;\n$/, "");
  return text(got).startsWith(wanted) ? [] : [`${what}: expected "${wanted}", got "${text(got)}"`];
}

/** Versions and their states; the reasons are those of the load. */
function compareStates(expected: readonly IndexRow[], got: readonly IndexRow[]): string[] {
  const levelled = got.map((row) => {
    const same = expected.find(({ version }) => version === row.version);
    return same?.reason === undefined || row.reason === undefined ? row : { ...row, reason: same.reason };
  });
  return compareIndex(expected, levelled);
}

/** The recorded server lists tensors that it found in a file in the order of their hashes. */
function sorted(body: unknown) {
  const lists = Object.entries(body as object).map(([key, value]) => {
    const isTensors = /^(in|out)puts?$/.test(key) && Array.isArray(value);
    return [key, isTensors ? [...value].sort((a, b) => (a.name < b.name ? -1 : 1)) : value];
  });
  return toJsonValue(Object.fromEntries(lists));
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
