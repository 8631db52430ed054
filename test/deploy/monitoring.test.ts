import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../support/repository.js";
import { liveMetrics } from "./live-metrics.js";
import { namesOfQuery } from "./promql.js";

const rulesFile = join(repositoryRoot, "deploy", "prometheus", "alerts.yml");
const dashboardFile = join(repositoryRoot, "deploy", "grafana", "tritonjs.json");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  /** How long the condition must hold. */
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly id: number;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

const rules: readonly Rule[] = parse(readFileSync(rulesFile, "utf8")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const dashboard: Dashboard = JSON.parse(readFileSync(dashboardFile, "utf8"));

/** Labels of each series on the page of a running server, by its name. */
let live: ReadonlyMap<string, ReadonlySet<string>>;

beforeAll(async () => {
  live = await liveMetrics();
});

/** What a query, and the text about its result, name although the server does not have it. */
function unknownNames(query: string, shown: readonly string[] = []): string[] {
  const { series, grouping } = namesOfQuery(query);
  expect(series.length).toBeGreaterThan(0);
  const all = new Set(series.flatMap(({ metric }) => [...(live.get(metric) ?? [])]));
  return [
    ...series.filter(({ metric }) => !live.has(metric)).map(({ metric }) => metric),
    ...series.flatMap(({ metric, labels }) =>
      labels.filter((label) => !live.get(metric)?.has(label)).map((label) => `${metric}{${label}}`),
    ),
    ...[...grouping, ...shown].filter((label) => !all.has(label)),
    // An aggregation keeps only the labels by which it groups.
    ...shown.filter((label) => grouping.length > 0 && !grouping.includes(label)),
  ];
}

describe("alert rules", () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    "%s names metrics and labels of a running server",
    (_, { expr, annotations }) => {
      const shown = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!);
      expect(unknownNames(expr, shown)).toEqual([]);
      expect(Object.keys(annotations)).toEqual(["summary", "description"]);
    },
  );

  it("are the alerts that the page about operations lists", () => {
    const page = readFileSync(join(repositoryRoot, "docs", "operations.md"), "utf8");
    const listed = [...page.matchAll(/^\| `(Triton\w+)` \| (\w+) \| ([^|]+) \|/gm)].map(
      ([, ...cells]) => cells,
    );
    expect(listed).toEqual(rules.map((rule) => [rule.alert, rule.labels.severity, rule.for ?? "at once"]));
  });

  const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined;
  const withoutPromtool = hasPromtool ? "" : " (skipped: there is no promtool)";
  it.skipIf(!hasPromtool)(`pass Prometheus' own check${withoutPromtool}`, () => {
    const { status, stderr } = spawnSync("promtool", ["check", "rules", rulesFile], { encoding: "utf8" });
    expect(`${status} ${stderr}`).toBe("0 ");
  });
});

describe("the Grafana dashboard", () => {
  const targets = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map((target) => [`${title}: ${target.legendFormat}`, target] as const),
  );

  it.each(targets)("names metrics and labels of a running server in %s", (_, { expr, legendFormat }) => {
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!);
    expect(unknownNames(expr.replaceAll("$__rate_interval", "1m"), shown)).toEqual([]);
  });

  it("has variables over labels of a running server, and uses no others", () => {
    const queries = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
    for (const query of queries) {
      const [, selector = "", label = ""] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? [];
      expect(unknownNames(selector, [label])).toEqual([]);
    }
    const used = JSON.stringify(dashboard.panels).matchAll(/\$\{?([a-z]\w*)/g);
    const names = dashboard.templating.list.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...used].map(([, name]) => name)));
  });

  it("has panels with numbers of their own that do not overlap", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});

describe("reading a query", () => {
  it("finds metrics, labels and groupings", () => {
    expect(namesOfQuery('sum by (le) (rate(a_bucket{x=~"1"}[5m])) / on (m) b{y!="",z="1"}')).toEqual({
      series: [
        { metric: "a_bucket", labels: ["x"] },
        { metric: "b", labels: ["y", "z"] },
      ],
      grouping: ["le", "m"],
    });
  });

  it.each(["sum(", "rate(a[5m]) >", '{job="a"}'])("refuses %s", (query) => {
    expect(() => namesOfQuery(query)).toThrow();
  });

  it("reports names that no server has", () => {
    expect(unknownNames('nv_inference_count{colour="red"} + nv_missing', ["size"])).toEqual([
      "nv_missing",
      "nv_inference_count{colour}",
      "size",
    ]);
  });
});
