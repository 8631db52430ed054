import { fetchHandler } from "@tritonjs/http/fetch";
import type { FuzzTarget } from "../engine/target.js";
import { fetchTarget } from "../support/fetch-target.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";
import { CONTROL_SEEDS, V2_HEADERS } from "../support/v2-seeds.js";

/** Paths and bodies of everything but inference: metadata, statistics, settings of traces and the log. */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  return fetchTarget({
    open: (onError) => fetchHandler(triton, { onError, metrics: true, openApi: true }),
    seeds: CONTROL_SEEDS,
    tokens: [...V2_TOKENS, "TIMESTAMPS", "TENSORS", "trace_level", "trace_file", "log_file", "ISO8601"],
    headers: V2_HEADERS,
    close: () => triton.close(),
  });
}
