import type { CollectedFamily, Series } from "@tritonjs/core/extension";
import type { RolloutReport } from "./rollout.js";

/** The metrics of all rollouts. Each series is labelled with the model and both versions. */
export function rolloutFamilies(reports: () => readonly RolloutReport[]): CollectedFamily[] {
  const family = (
    name: string,
    type: "gauge" | "counter",
    help: string,
    series: (report: RolloutReport) => readonly (readonly [Record<string, string>, number])[],
  ): CollectedFamily => ({
    name: `tritonjs_rollout_${name}`,
    help,
    type,
    collect: () =>
      reports().flatMap((report) => {
        const labels = { model: report.model, from: String(report.from), to: String(report.to) };
        return series(report).map(([own, value]): Series => ({ labels: { ...labels, ...own }, value }));
      }),
  });
  const arms = ({ verdict }: RolloutReport) => [verdict.old, verdict.new];
  return [
    family("share", "gauge", "Percentage of the requests that the new version gets", ({ share }) => [
      [{}, share],
    ]),
    family("in_flight", "gauge", "Requests to the new version, and copies, that are not over", (report) => [
      [{}, report.inFlight],
    ]),
    family("state", "gauge", "1 for the present state of the rollout", ({ state }) => [[{ state }, 1]]),
    family("requests_total", "counter", "Requests of the rollout that are over, by version", (report) =>
      arms(report).map(({ version, requests }) => [{ version: String(version) }, requests] as const),
    ),
    family("errors_total", "counter", "Requests of the rollout that failed, by version", (report) =>
      arms(report).map(({ version, errors }) => [{ version: String(version) }, errors] as const),
    ),
    family("shadows_total", "counter", "Copies of requests, by what became of them", ({ verdict }) =>
      (["answered", "errors", "shed"] as const).map(
        (outcome) => [{ outcome }, verdict.shadow[outcome]] as const,
      ),
    ),
    family(
      "disagreements_total",
      "counter",
      "Answers of both versions that disagree, by output",
      ({ verdict }) =>
        verdict.agreement.map(({ output, disagreements }) => [{ output }, disagreements] as const),
    ),
    family("drift_psi", "gauge", "Population stability index of the last window, by input", ({ verdict }) =>
      verdict.drift.map(({ input, psi }) => [{ input }, psi] as const),
    ),
    family("drift_ks", "gauge", "Kolmogorov-Smirnov distance of the last window, by input", ({ verdict }) =>
      verdict.drift.map(({ input, ks }) => [{ input }, ks] as const),
    ),
    family("evidence", "gauge", "Evidence against the new version by check; 1 is a fault", ({ verdict }) =>
      Object.entries(verdict.evidence).map(([check, value]) => [{ check }, value] as const),
    ),
  ];
}
