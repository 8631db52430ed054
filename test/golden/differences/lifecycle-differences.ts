import type { Scenario } from "../support/lifecycle/scenario.js";
import type { Difference } from "./difference.js";

type ScenarioDifference = Difference<Scenario>;

/** The name in a load call that points outside the repository. */
function outside(call = ""): string | undefined {
  return /^POST \/v2\/repository\/models\/(\.{1,2})\/load$/.exec(call)?.[1];
}

/** Such a name is rejected by its form: no file is read for it, and the server stays ready. */
const modelNames: ScenarioDifference = {
  rule: "model-names-inside",
  applies: ({ steps }) => steps.some(({ call }) => outside(call) !== undefined),
  amend({ steps }) {
    const names = new Set<string>();
    for (const step of steps) {
      const name = outside(step.call);
      if (name !== undefined) {
        names.add(name);
        step.status = 400;
        step.response = {
          error: `invalid model name '${name}', model name must not contain path traversal characters`,
        } as typeof step.response;
      }
      if (names.size === 0) continue;
      step.index_after = step.index_after?.filter((row) => !names.has(row.name)) as typeof step.index_after;
      if (step.server_ready_after !== undefined) step.server_ready_after = 200;
    }
  },
};

const EXPIRED = /failed to stop server: Internal - Exit timeout expired/;

/** After a failed reload the recorded server waits until its exit timeout is over. */
const stopsAfterFailedReload: ScenarioDifference = {
  rule: "stops-after-failed-reload",
  applies: ({ exit_code: code, log_at_exit: log = [], steps }) =>
    code === 1 && log.some((line) => EXPIRED.test(line)) && steps.every(({ signal }) => signal === undefined),
  amend(draft) {
    draft.exit_code = 0;
  },
};

/** Differences in the life of a repository from the recorded server. */
export const lifecycleDifferences: readonly ScenarioDifference[] = [modelNames, stopsAfterFailedReload];
