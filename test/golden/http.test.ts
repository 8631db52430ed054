import { Triton } from "@tritonjs/core";
import { http, metrics } from "@tritonjs/http";
import { afterAll, beforeAll, describe } from "vitest";
import { httpBehaviours } from "./support/behaviours/http-models.js";
import { type Addresses, compareHttpCase } from "./support/http/compare-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import { httpSubject } from "./support/http/http-subject.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";
import { bindModels, type RecordedModel, readModels } from "./support/served-models.js";

const models = readModels(loadJson<Record<string, RecordedModel>>("http/models.json"));

/** `--http-max-input-size` of a recorded server. */
function maxInputSize(recorded: HttpCase): number | undefined {
  const flag = recorded.server_flags?.find((text) => text.startsWith("--http-max-input-size="));
  return flag === undefined ? undefined : Number(flag.split("=")[1]);
}
