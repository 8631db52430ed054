import { CHANGING } from "../repository/models.mjs";

/** Models whose statistics begin again when they are loaded, and those whose clients want to be refused. */
const NOT_COMPARED = new Set([CHANGING, "loaded_js", "loaded_onnx", "stories", "hostile_template"]);
/** Ensembles, which count a failed request again when no other step is in flight, as in Triton. */
const COUNTED_TWICE = new Set(["chain"]);

/**
 * Compares the statistics of a server with what its clients saw. Requests of clients that left may count as either, or
 * as nothing if they never arrived.
 *
 * @param counts requests of the clients by model: `{ right, failed, left }`
 * @param refused requests by model that the server refused before its queue, which count nowhere
 * @param called requests by model that ensembles sent: `{ right, failed }`
 * @returns descriptions of what differs
 */
export function faultsOfStatistics(server, reports, counts, refused, called) {
  const faults = [];
  for (const { name, inference_stats: stats } of reports) {
    if (NOT_COMPARED.has(name)) continue;
    const { right = 0, failed = 0, left = 0 } = counts.get(`${server}/${name}`) ?? {};
    const inner = called.get(name) ?? { sure: 0, open: 0 };
    const [success, fail] = [Number(stats.success.count), Number(stats.fail.count)];
    const expected = {
      success: [right + inner.sure, right + inner.sure + inner.open + left],
      fail: [
        failed - (refused.get(name) ?? 0),
        failed * (COUNTED_TWICE.has(name) ? 2 : 1) + inner.open + left,
      ],
    };
    for (const [what, count] of [
      ["success", success],
      ["fail", fail],
    ]) {
      const [low, high] = expected[what];
      if (count < low || count > high)
        faults.push(
          `statistics of '${name}' of ${server}: expected ${what} from ${low} to ${high}, got ${count}`,
        );
    }
  }
  return faults;
}
