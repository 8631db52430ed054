import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { VERSION } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
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

it("the Helm chart has this version", () => {
  const chart = documentsOf(readFileSync(join(repositoryRoot, "deploy/helm/tritonjs/Chart.yaml"), "utf8"))[0];
  expect([chart.version, chart.appVersion]).toEqual([VERSION, VERSION]);
});
