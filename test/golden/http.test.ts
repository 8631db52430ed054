import { Triton } from "@tritonjs/core";
import { http, metrics } from "@tritonjs/http";
import { afterAll, beforeAll, describe } from "vitest";
import { httpBehaviours } from "./support/behaviours/http-models.js";
import { type Addresses, compareHttpCase } from "./support/http/compare-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import { httpSubject } from "./support/http/http-subject.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { bindModels, labelsOf, type RecordedModel, readModels } from "./support/served-models.js";

/** The models of the repository that most cases were recorded with. */
const models = readModels(
  Object.fromEntries(
    Object.entries(loadJson<Record<string, RecordedModel>>("http/models.json")).filter(
      ([, model]) => model.repository === undefined,
    ),
  ),
);

/** `--http-max-input-size` of the recorded servers that had it. */
const SMALL_INPUT_SIZE = 400;

const hasSmallInputs = ({ server_flags: flags }: HttpCase): boolean =>
  flags?.includes(`--http-max-input-size=${SMALL_INPUT_SIZE}`) ?? false;

/** All models behind HTTP and metrics ports. */
class Server {
  readonly triton = new Triton();
  addresses: Addresses | undefined;

  async start(maxInputSize?: number): Promise<void> {
    bindModels(this.triton, models, httpBehaviours);
    const labels = labelsOf(models);
    const frontends = [http({ port: 0, maxInputSize, labels }), metrics({ port: 0 })];
    const { addresses } = await this.triton.serve({ frontends });
    this.addresses = addresses as unknown as Addresses;
  }
}

describe("recorded HTTP exchanges", () => {
  const server = new Server();
  const smallInputs = new Server();

  beforeAll(() => Promise.all([server.start(), smallInputs.start(SMALL_INPUT_SIZE)]));
  afterAll(() => Promise.all([server.triton.close(), smallInputs.triton.close()]));

  replay<HttpCase>({
    cases: loadLines("http/cases.jsonl"),
    subject: (recorded) => httpSubject(recorded, models),
    run: (recorded) => {
      const { addresses } = hasSmallInputs(recorded) ? smallInputs : server;
      return compareHttpCase(addresses as Addresses, recorded, models);
    },
  });
});
