import { type ParsedConfig, parseConfigText } from "../../support/config-text.js";
import { configText, type LoadCase, type PlayedLoad } from "../../support/loads/load-case.js";
import type { Difference, Draft } from "../difference.js";

/** A rule about loads of a model. */
export type LoadDifference = Difference<LoadCase, PlayedLoad>;

/** Reason why the recorded server rejected the model when it created it; `undefined` otherwise. */
export function reasonOf({ load, index = [] }: LoadCase | Draft<LoadCase>): string | undefined {
  return load?.status === 400 ? index.find(({ state }) => state === "UNAVAILABLE")?.reason : undefined;
}

/** Makes a load one that is rejected when the model is created. */
export function refuse(draft: Draft<LoadCase>, reason: string, version = "1"): void {
  const error = `load failed for model '${draft.model}': version ${version} is at UNAVAILABLE state: ${reason};\n`;
  fail(draft, 400, error);
  draft.index = [{ name: draft.model, version, state: "UNAVAILABLE", reason }];
}

/** Makes a load one that is rejected when the repository is read. */
export function refuseWhenPolled(draft: Draft<LoadCase>, reason: string): void {
  fail(draft, 500, `failed to load '${draft.model}', failed to poll from model repository`);
  draft.index = [{ name: draft.model, state: "UNAVAILABLE", reason }];
}

const NO_VERSION = "at least one version must be available under the version policy of model";

/** Makes a load one of a model without a version. */
export function refuseWithoutVersion(draft: Draft<LoadCase>): void {
  fail(draft, 400, `load failed for model '${draft.model}': ${NO_VERSION} '${draft.model}'\n`);
  draft.index = [{ name: draft.model, state: "UNAVAILABLE", reason: `${NO_VERSION} '${draft.model}'` }];
}

function fail(draft: Draft<LoadCase>, status: number, error: string): void {
  draft.load = { status, body: { error } };
  for (const field of ["config", "config_raw", "metadata", "ready"] as const) delete draft[field];
}

/** Makes a load one that succeeds. */
export function accept(draft: Draft<LoadCase>): void {
  draft.load = { status: 200, body: "" };
  draft.index = [{ name: draft.model, version: "1", state: "READY" }];
  draft.ready = 200;
}

/** The configuration in a model's directory; `undefined` if it does not parse. */
export function configOf(recorded: LoadCase | Draft<LoadCase>): ParsedConfig | undefined {
  try {
    return parseConfigText(configText(recorded as LoadCase), recorded.model);
  } catch {
    return undefined;
  }
}

/** The received reason, once it has the form that the rule requires. */
export function takenReason({ index }: PlayedLoad, form: RegExp): string {
  const reason = index.find(({ state }) => state === "UNAVAILABLE")?.reason ?? "";
  if (!form.test(reason)) throw new Error(`the reason is "${reason}"`);
  return reason;
}
