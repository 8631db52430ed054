import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { npmTool } from "../package/foreign-tools.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { documentsOf, type Manifest, manifestsIn } from "./manifests.js";

/** The schemas of Kubernetes 1.31, of the Prometheus operator and of KEDA, as their packages for Node 20 have them. */
const SCHEMAS = [
  "kubernetes-models@4.5.1",
  "@kubernetes-models/prometheus-operator@4.4.4",
  "@kubernetes-models/keda@0.4.2",
  "ajv@8.17.1",
];
const schemas = npmTool(
  "the schemas of Kubernetes",
  "kubernetes-schemas-2",
  SCHEMAS.join(" "),
  join("kubernetes-models", "package.json"),
);

/** Packages of schemas by the group of their objects. */
const PACKAGES: Readonly<Record<string, string>> = {
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
  "keda.sh": "@kubernetes-models/keda",
};

/** Finds what a schema rejects in an object; empty for a valid one. */
function faultsOf(object: Manifest): string {
  const require = createRequire(schemas.path!);
  const { apiVersion, kind } = object;
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  const crd = join(repositoryRoot, "test/deploy/crds", `${group}_${kind.toLowerCase()}s.yaml.gz`);
  if (existsSync(crd)) return faultsByDefinition(require, crd, object);
  const model = require(`${PACKAGES[group] ?? "kubernetes-models"}/${apiVersion}/${kind}`)[kind];
  try {
    new model(object).validate();
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** Checks an object against its custom resource definition. As kubectl does, it rejects fields that do not exist. */
function faultsByDefinition(require: NodeJS.Require, path: string, object: Manifest): string {
  const definition = parse(gunzipSync(readFileSync(path)).toString("utf8"));
  const version = definition.spec.versions.find(({ name }: Manifest) =>
    object.apiVersion.endsWith(`/${name}`),
  );
  const { Ajv } = require("ajv");
  const validate = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(
    closed(version.schema.openAPIV3Schema, object, true),
  );
  if (validate(object)) return "";
  return validate.errors
    .map(
      ({ instancePath, message, params }: Manifest) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    )
    .join("; ");
}

/**
 * The part of a schema that an object needs, without unknown fields: a validator of the whole schema, with all fields of
 * a pod, takes a minute to compile. Objects that may have any fields stay open.
 */
function closed(schema: Manifest, value: Manifest, isRoot = false): Manifest {
  if (schema["x-kubernetes-int-or-string"]) return { type: ["integer", "string"] };
  const { properties, items, additionalProperties, ...rest } = schema;
  if (Array.isArray(value) && items !== undefined) {
    return { ...rest, items: value.map((each) => closed(items, each)) };
  }
  if (typeof value !== "object" || value === null || properties === undefined) return schema;
  const known = Object.keys(properties).filter((name) => name in value);
  const needed = Object.fromEntries(known.map((name) => [name, closed(properties[name], value[name])]));
  const isOpen =
    isRoot || schema["x-kubernetes-preserve-unknown-fields"] || additionalProperties !== undefined;
  return { ...rest, properties: needed, ...(!isOpen && { additionalProperties: false }) };
}

const isObject = (object: Manifest) => object.apiVersion !== undefined && object.kind !== "Kustomization";

describe.each(["kubernetes", "kserve", "gateway"])(`the manifests of deploy/%s${schemas.note}`, (folder) => {
  it.skipIf(schemas.path === undefined)("satisfy the schemas of their kinds", () => {
    const checked = manifestsIn(folder).flatMap(({ path, objects }) =>
      objects.filter(isObject).map((object) => [path, object.kind, faultsOf(object)]),
    );
    expect(checked.length).toBeGreaterThan(0);
    expect(checked.filter(([, , faults]) => faults !== "")).toEqual([]);
  });
});

it.skipIf(schemas.path === undefined)(`the schemas reject objects with mistakes${schemas.note}`, () => {
  const deployment = manifestsIn("kubernetes/base")
    .flatMap(({ objects }) => objects)
    .find(({ kind }) => kind === "Deployment");
  const [runtime] = manifestsIn("kserve")[0]!.objects;
  const broken = structuredClone([deployment, runtime, runtime]);
  broken[0].spec.template.spec.containers[0].ports[0].containerPort = "http";
  broken[1].spec.container = broken[1].spec.containers;
  broken[2].spec.containers[0].ports[0].containerPort = "http";
  for (const object of broken) expect(faultsOf(object)).not.toBe("");
});

/** Debian's Go and sprig render a chart as helm does. */
const goPath = "/usr/share/gocode";
const hasGo = existsSync("/usr/bin/go") && existsSync(join(goPath, "src/github.com/Masterminds/sprig"));

describe(`the Helm chart${hasGo ? "" : " (skipped: there are no packages golang-go and golang-github-masterminds-sprig-dev)"}${schemas.note}`, () => {
  const chart = join(repositoryRoot, "deploy/helm/tritonjs");
  const defaults = parse(readFileSync(join(chart, "values.yaml"), "utf8"));

  async function render(changes: Manifest) {
    const folder = mkdtempSync(join(tmpdir(), "tritonjs-chart-"));
    const values = join(folder, "values.json");
    const merged = { ...defaults };
    for (const [name, value] of Object.entries<Manifest>(changes)) {
      const isGroup = typeof value === "object" && !Array.isArray(value);
      merged[name] = isGroup ? { ...defaults[name], ...value } : value;
    }
    writeFileSync(values, JSON.stringify(merged));
    const program = join(repositoryRoot, "test/deploy/helm/render.go");
    const env = {
      GO111MODULE: "off",
      GOPATH: goPath,
      GOCACHE: join(repositoryRoot, "node_modules", ".cache", "go"),
      GOFLAGS: "",
    };
    const ended = await new Program("/usr/bin/go", ["run", program, chart, "demo", values], {
      cwd: folder,
      env,
    }).ended;
    rmSync(folder, { recursive: true });
    return ended;
  }

  it.skipIf(!hasGo || schemas.path === undefined).each([
    ["its defaults", {}, ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "Service"]],
    [
      "all of its parts",
      {
        autoscaling: { kind: "hpa" },
        serviceMonitor: { enabled: true },
        serviceAccountName: "reader",
        env: [{ name: "A", value: "b" }],
        extraArgs: ["--id=x"],
        nodeSelector: { disk: "fast" },
        tolerations: [{ key: "gpu", operator: "Exists" }],
      },
      [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "Service",
        "ServiceMonitor",
      ],
    ],
    [
      "KEDA and models in a cloud",
      {
        autoscaling: { kind: "keda" },
        models: { repository: "s3://bucket/models", claimName: "" },
        networkPolicy: { enabled: false },
      },
      ["Deployment", "PodDisruptionBudget", "ScaledObject", "Service", "Service"],
    ],
  ])("renders valid objects with %s", async (_, changes, kinds) => {
    const { code, stdout, stderr } = await render(changes);
    expect([code, stderr]).toEqual([0, ""]);
    const objects = documentsOf(stdout);
    expect(objects.map(({ kind }) => kind).sort()).toEqual(kinds);
    expect(
      objects.map((object) => [object.kind, faultsOf(object)]).filter(([, faults]) => faults !== ""),
    ).toEqual([]);
  });

  it.skipIf(!hasGo)("refuses a kind of autoscaling that does not exist", async () => {
    const { code, stderr } = await render({ autoscaling: { kind: "magic" } });
    expect([code, stderr]).toEqual([1, expect.stringContaining('expected none, hpa or keda, got "magic"')]);
  });
});

const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined;
const withoutPromtool = hasPromtool ? "" : " (skipped: there is no promtool)";
it.skipIf(!hasPromtool)(`the alerts pass Prometheus' own check${withoutPromtool}`, () => {
  const rulesFile = join(repositoryRoot, "deploy", "prometheus", "alerts.yml");
  const { status, stderr } = spawnSync("promtool", ["check", "rules", rulesFile], { encoding: "utf8" });
  expect(`${status} ${stderr}`).toBe("0 ");
});
