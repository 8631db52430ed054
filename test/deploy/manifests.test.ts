import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { Triton } from "@tritonjs/core";
import { VERSION } from "@tritonjs/core/internal";
import { textGeneration } from "@tritonjs/llm";
import { openai } from "@tritonjs/llm/openai";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { repositoryRoot } from "../support/repository.js";
import { liveMetrics } from "./live-metrics.js";
import { documentsOf, type Manifest, manifestsIn, serversOf } from "./manifests.js";
import { namesOfQuery } from "./promql.js";

const kubernetes = manifestsIn("kubernetes");

const kserve = manifestsIn("kserve");

const servers = [...kubernetes, ...kserve].flatMap(({ path, objects }) => serversOf(path, objects));

const objects = [...kubernetes, ...kserve].flatMap((file) => file.objects);

const find = (kind: string, name: string): Manifest =>
  objects.find((object) => object.kind === kind && object.metadata?.name === name);

const read = (path: string) => parse(readFileSync(join(repositoryRoot, "deploy", path), "utf8"));

const imageOfVersion = new RegExp(`^tritonjs(:${VERSION})?$`);

describe("the manifests of Kubernetes", () => {
  it("the kustomizations name files that exist, and image tags of this version", () => {
    for (const { path, objects } of kubernetes.filter(({ path }) => path.endsWith("kustomization.yaml"))) {
      const folder = path.slice(0, -"kustomization.yaml".length);
      for (const resource of objects[0].resources) {
        expect(kubernetes.map((file) => file.path)).toContain(`${folder}${resource}`);
      }
      for (const { newTag } of objects[0].images ?? []) expect(newTag).toBe(VERSION);
    }
  });

  it("services, budgets, policies and autoscalers select the pods of the deployment", () => {
    const { metadata, spec } = find("Deployment", "tritonjs");
    const labels = spec.template.metadata.labels;
    expect(spec.selector.matchLabels).toEqual(labels);
    for (const name of ["tritonjs", "tritonjs-replicas"])
      expect(find("Service", name).spec.selector).toEqual(labels);
    expect(find("PodDisruptionBudget", "tritonjs").spec.selector.matchLabels).toEqual(labels);
    expect(find("NetworkPolicy", "tritonjs").spec.podSelector.matchLabels).toEqual(labels);
    expect(find("ServiceMonitor", "tritonjs").spec.selector.matchLabels).toEqual(
      find("Service", "tritonjs").metadata.labels,
    );
    for (const kind of ["HorizontalPodAutoscaler", "ScaledObject"]) {
      expect(find(kind, "tritonjs").spec.scaleTargetRef.name).toBe(metadata.name);
    }
  });

  it("the service monitor and the network policy name the metrics port", () => {
    const ports: Manifest[] = find("Service", "tritonjs").spec.ports;
    const [{ port, path }] = find("ServiceMonitor", "tritonjs").spec.endpoints;
    expect([ports.find(({ name }) => name === port).port, path]).toEqual([8002, "/metrics"]);
    const permitted = find("NetworkPolicy", "tritonjs").spec.ingress.flatMap(({ ports }: Manifest) =>
      ports.map((each: Manifest) => each.port),
    );
    expect(permitted).toEqual([8000, 8001, 9000, 8002]);
  });

  it("the queries of the autoscalers name metrics that the server has", async () => {
    const adapter = read("kubernetes/autoscaling/prometheus-adapter.yaml").rules.custom[0];
    const [metric] = find("HorizontalPodAutoscaler", "tritonjs").spec.metrics;
    expect(metric.pods.metric.name).toBe(adapter.name.as);
    const filled = (query: string) =>
      query.replaceAll("<<.GroupBy>>", "pod").replaceAll("<<.LabelMatchers>>", 'pod="p"');
    const [trigger] = find("ScaledObject", "tritonjs").spec.triggers;
    const live = await liveMetrics();
    for (const query of [adapter.seriesQuery, filled(adapter.metricsQuery), trigger.metadata.query]) {
      for (const { metric } of namesOfQuery(query).series) expect([...live.keys()]).toContain(metric);
    }
  });

  it("the Helm chart has this version", () => {
    const chart = documentsOf(
      readFileSync(join(repositoryRoot, "deploy/helm/tritonjs/Chart.yaml"), "utf8"),
    )[0];
    expect([chart.version, chart.appVersion]).toEqual([VERSION, VERSION]);
  });
});

describe.each(servers)("the server of $path", ({ container, graceSeconds }) => {
  const [command, ...args] = container.args as string[];
  const { values, warnings } = readArguments(args, {});

  it("starts with options that exist and have an effect", () => {
    expect([command, warnings]).toEqual(["serve", []]);
    expect(container.image).toMatch(imageOfVersion);
  });

  it("declares ports on which it listens, and probes them with paths of the protocol", () => {
    const listens = [values["http-port"], values["grpc-port"], values["metrics-port"]];
    const ports: Manifest[] = container.ports;
    for (const { containerPort } of ports) expect(listens).toContain(containerPort);
    const probes = [container.startupProbe, container.readinessProbe, container.livenessProbe];
    const paths = probes.filter((probe) => probe !== undefined).map(({ httpGet }) => httpGet);
    for (const { port, path } of paths) {
      const number = ports.find(({ name }) => name === port)?.containerPort ?? port;
      expect([number, path]).toEqual([
        values["http-port"],
        expect.stringMatching(/^\/v2\/health\/(live|ready)$/),
      ]);
    }
    expect(container.livenessProbe.httpGet.path).toBe("/v2/health/live");
    expect(container.readinessProbe.httpGet.path).toBe("/v2/health/ready");
  });

  it("has more time to stop than it needs", () => {
    const needed = values["exit-delay-secs"] + values["exit-timeout-secs"];
    const given =
      graceSeconds ?? find("InferenceService", "resnet").spec.predictor.terminationGracePeriodSeconds;
    expect(given).toBeGreaterThan(needed);
  });

  it("runs without root and without further rights", () => {
    expect(container.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
  });
});

describe("the files of compose", () => {
  const { services } = read("compose/compose.yaml");

  it("start the server with options that exist, and give it more time to stop than it needs", () => {
    const [command, ...args] = services.tritonjs.command as string[];
    const { values, warnings } = readArguments(args, {});
    expect([command, warnings]).toEqual(["serve", []]);
    expect(Number.parseInt(services.tritonjs.stop_grace_period, 10)).toBeGreaterThan(
      values["exit-timeout-secs"],
    );
    expect(services.tritonjs.image).toBe(`tritonjs:${VERSION}`);
  });

  it("mount files that exist", () => {
    const mounted = Object.values<Manifest>(services).flatMap(({ volumes }) => volumes as string[]);
    for (const path of mounted
      .map((volume) => volume.split(":")[0]!)
      .filter((path) => path.startsWith("."))) {
      expect(() => readFileSync(join(repositoryRoot, "deploy/compose", path))).not.toThrow(/ENOENT/);
    }
  });

  it("scrape the job of the alert rules on the metrics port", () => {
    const [{ job_name: job, static_configs: targets }] = read("compose/prometheus.yml").scrape_configs;
    expect([job, targets[0].targets]).toEqual(["tritonjs", ["tritonjs:8002"]]);
  });
});

const values = read("gateway/endpoint-picker-values.yaml");

const pool = read("gateway/inference-pool.yaml");

describe("the gateway", () => {
  it("the endpoint picker asks for metrics that the port of the OpenAI endpoints has", async () => {
    await using triton = new Triton();
    triton.bind({
      modelName: "stories",
      inferFunc: textGeneration({
        directory: join(repositoryRoot, "examples/text-generation/models/stories/1"),
      }),
    });
    const { addresses } = await triton.serve({ frontends: [openai({ port: 0 })] });
    const page = await (await fetch(`${addresses.openai!.url}/metrics`)).text();
    const asked = Object.values<string>(values.inferenceExtension.flags);
    expect(asked).toHaveLength(3);
    for (const metric of asked)
      expect(page).toMatch(new RegExp(`^${metric}\\{.*model="stories".*\\} 0$`, "m"));
  });

  it("the pool names the port of the OpenAI endpoints, and the labels of the deployment", () => {
    const [{ number }] = pool.spec.targetPorts;
    const { values: options } = readArguments(["--model-repository=/models", `--openai-port=${number}`], {});
    expect([options["openai-port"], values.inferencePool.targetPortNumber]).toEqual([number, number]);
    const deployment = read("kubernetes/base/deployment.yaml");
    expect(pool.spec.selector.matchLabels).toEqual(deployment.spec.selector.matchLabels);
    expect(values.inferencePool.modelServers.matchLabels).toEqual(deployment.spec.selector.matchLabels);
  });
});

describe("the rules and the dashboard of monitoring", () => {
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
    readonly templating: {
      readonly list: readonly { readonly name: string; readonly definition?: string }[];
    };
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
        const shown = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(
          ([, label]) => label!,
        );
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
});
