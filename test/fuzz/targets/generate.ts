import { fetchHandler } from "@tritonjs/http/fetch";
import type { FuzzTarget } from "../engine/target.js";
import { fetchTarget } from "../support/fetch-target.js";
import { openIdentityModels, V2_TOKENS } from "../support/identity-models.js";
import { GENERATE_SEEDS } from "../support/v2-seeds.js";

/** The bodies of `generate` and `generate_stream`. */
export async function open(): Promise<FuzzTarget> {
  const { triton } = await openIdentityModels();
  return fetchTarget({
    open: (onError) => fetchHandler(triton, { onError }),
    seeds: GENERATE_SEEDS,
    tokens: V2_TOKENS,
    close: () => triton.close(),
  });
}
