import { readFileSync } from "node:fs";
import { join } from "node:path";
import { batch, Triton } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { quietLogger } from "../golden/support/quiet-logger.js";
import { repositoryRoot } from "../support/repository.js";
import { evaluate, type Scrape, samplesOfPage } from "./promql.js";

const read = (path: string) => parse(readFileSync(join(repositoryRoot, "deploy/kubernetes", path), "utf8"));
const hpa = read("autoscaling/horizontal-pod-autoscaler.yaml").spec;
const [adapterRule] = read("autoscaling/prometheus-adapter.yaml").rules.custom;
const keda = read("keda/scaled-object.yaml").spec;

/** How each autoscaler sees its replicas: the number that it wants of them. */
const AUTOSCALERS = {
  HorizontalPodAutoscaler: {
    least: hpa.minReplicas as number,
    most: hpa.maxReplicas as number,
    /** Seconds for which no replica is removed that was wanted. */
    staysSecs: hpa.behavior.scaleDown.stabilizationWindowSeconds as number,
    load(scrapes: readonly Scrape[]): number {
      const query = adapterRule.metricsQuery
        .replaceAll("<<.GroupBy>>", "pod")
        .replaceAll("<<.LabelMatchers>>", 'namespace="default"');
      const { target } = hpa.metrics[0].pods;
      const values = evaluate(query, scrapes).map(({ value }) => value);
      return (
        values.reduce((total, value) => total + value, 0) / (Number.parseInt(target.averageValue, 10) / 1000)
      );
    },
  },
  ScaledObject: {
    least: keda.minReplicaCount as number,
    most: keda.maxReplicaCount as number,
    // KEDA makes a HorizontalPodAutoscaler, with the window that Kubernetes gives it.
    staysSecs: 300,
    load(scrapes: readonly Scrape[]): number {
      const [{ metadata }] = keda.triggers;
      return (evaluate(metadata.query, scrapes)[0]?.value ?? 0) / Number(metadata.threshold);
    },
  },
};
type Autoscaler = (typeof AUTOSCALERS)[keyof typeof AUTOSCALERS];

const SECOND = 1000;
const SCRAPE_SECS = 15;
/** Time that one request takes: a replica with one instance does 50 a second. */
const EXECUTION_MS = 20;
/** Kubernetes changes nothing within this share of the target. */
const TOLERANCE = 0.1;

interface Load {
  /** Requests a second, over all replicas. */
  readonly rate: number;
  readonly seconds: number;
  /** Time that an execution takes. @default EXECUTION_MS */
  readonly executionMs?: number;
}

/** Replicas on a virtual clock, whose number an autoscaler sets. */
class Fleet {
  readonly clock = new VirtualClock();
  readonly replicas: { readonly triton: Triton; readonly pod: string; readonly send: () => void }[] = [];
  /** Number of replicas after each decision. */
  readonly sizes: number[] = [];
  refused = 0;
  answered = 0;
  #scrapes: Scrape[] = [];
  #wanted: { readonly at: number; readonly size: number }[] = [];
  #scraped = 0;
  #made = 0;
  #turn = 0;
  #executionMs = EXECUTION_MS;

  constructor(private readonly autoscaler: Autoscaler) {
    this.#resize(autoscaler.least);
  }

  #start(): void {
    const { clock } = this;
    const triton = new Triton({ clock, logger: quietLogger });
    const model = triton.bind({
      modelName: "slow",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: batch(async ({ x }) => {
        await new Promise<void>((resolve) => {
          clock.setTimer(this.#executionMs, resolve);
        });
        return { y: x };
      }),
      config: { maxBatchSize: 1, batcher: { defaultQueuePolicy: { maxQueueSize: 2 } } },
    });
    const send = () => {
      model.inferSample({ x: [1] }).then(
        () => this.answered++,
        () => this.refused++,
      );
    };
    this.replicas.push({ triton, pod: `tritonjs-${this.#made++}`, send });
  }

  #resize(size: number): void {
    while (this.replicas.length < size) this.#start();
    for (const { triton } of this.replicas.splice(size)) void triton.close();
  }

  async #scrape(): Promise<void> {
    const samples = await Promise.all(
      this.replicas.map(async ({ triton, pod }) =>
        samplesOfPage(await serviceOf(triton).metrics(), {
          pod,
          instance: pod,
          namespace: "default",
          job: "tritonjs",
        }),
      ),
    );
    this.#scrapes.push({ time: this.clock.now() / SECOND, samples: samples.flat() });
    this.#scrapes = this.#scrapes.slice(-10);
  }

  #decide(): void {
    const { least, most, staysSecs } = this.autoscaler;
    const wanted = this.autoscaler.load(this.#scrapes);
    const isWithin = Math.abs(wanted / this.replicas.length - 1) <= TOLERANCE;
    const now = this.clock.now() / SECOND;
    this.#wanted.push({ at: now, size: isWithin ? this.replicas.length : Math.ceil(wanted) });
    this.#wanted = this.#wanted.filter(({ at }) => at > now - staysSecs);
    // As the policy of the autoscaler says, the number at most doubles at a time.
    const next = Math.min(Math.max(...this.#wanted.map(({ size }) => size)), 2 * this.replicas.length);
    this.#resize(Math.min(most, Math.max(least, next)));
    this.sizes.push(this.replicas.length);
  }

  /** Plays a load. Each 15 seconds the replicas are scraped, and each 30 the autoscaler decides. */
  async play({ rate, seconds, executionMs = EXECUTION_MS }: Load): Promise<void> {
    this.#executionMs = executionMs;
    const gapMs = SECOND / rate;
    for (let at = 0; at < seconds * SECOND; at += gapMs) {
      await this.clock.advance(gapMs);
      this.replicas[this.#turn++ % this.replicas.length]!.send();
      const isScrape =
        Math.floor((at + gapMs) / (SCRAPE_SECS * SECOND)) > Math.floor(at / (SCRAPE_SECS * SECOND));
      if (!isScrape) continue;
      await this.#scrape();
      if (++this.#scraped % 2 === 0) this.#decide();
    }
  }

  async close(): Promise<void> {
    this.#resize(0);
  }
}

describe.each(Object.entries(AUTOSCALERS))("the %s", (_, autoscaler) => {
  it("adds replicas while requests are refused, until none is, and removes them again", async () => {
    const fleet = new Fleet(autoscaler);
    await fleet.play({ rate: 190, seconds: 90 });
    fleet.refused = 0;
    await fleet.play({ rate: 190, seconds: 400 });
    expect(fleet.refused).toBe(0);
    // 190 requests of 20 ms at a load of 0.7: 5.4 replicas.
    expect(fleet.sizes.at(-1)).toBe(6);
    await fleet.play({ rate: 20, seconds: 400 });
    expect(fleet.sizes.at(-1)).toBe(autoscaler.least);
    await fleet.close();
  });

  it("adds replicas when not one request succeeds", async () => {
    const fleet = new Fleet(autoscaler);
    await fleet.play({ rate: 20, seconds: 120, executionMs: 10 * 60 * SECOND });
    expect(fleet.answered).toBe(0);
    expect(fleet.sizes.at(-1)).toBe(autoscaler.most);
    await fleet.close();
  });

  it("leaves the number alone under a load that the replicas can take", async () => {
    const fleet = new Fleet(autoscaler);
    await fleet.play({ rate: 69, seconds: 150 });
    expect(new Set(fleet.sizes)).toEqual(new Set([autoscaler.least]));
    await fleet.close();
  });
});
