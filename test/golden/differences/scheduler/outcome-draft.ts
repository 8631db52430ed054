import type { ModelConfig } from "@tritonjs/core";
import { type ParsedConfig, parseConfigText } from "../../support/config-text.js";
import type {
  Action,
  Outcome,
  ResponseRecord,
  Scenario,
  StatisticsRecord,
} from "../../support/scheduler/scenario.js";
import type { Difference, Draft } from "../difference.js";

/** A rule about scheduler scenarios. */
export type ScenarioDifference = Difference<Scenario, Outcome | undefined>;

export type ExecutionDraft = Draft<Outcome["executions"][number]>;
export type RequestDraft = ExecutionDraft["requests"][number];

/** Answers closer together than this arrive as one group. */
const GROUP_GAP_MS = 12;

const REQUEST_COUNTS = ["success", "queue", "compute_input", "compute_infer", "compute_output"] as const;

/** The outcome of a recorded scenario, and the ways in which rules change it. */
export class OutcomeDraft {
  readonly outcome: Draft<Scenario>["outcome"];
  readonly #configs: ReadonlyMap<string, ParsedConfig>;

  constructor(readonly scenario: Draft<Scenario> | Scenario) {
    this.outcome = scenario.outcome as Draft<Scenario>["outcome"];
    const texts: Record<string, string> = { ...scenario.extra_models, [scenario.id]: scenario.config_pbtxt };
    this.#configs = new Map(Object.entries(texts).map(([name, text]) => [name, parseConfigText(text, name)]));
  }

  get models(): readonly string[] {
    return [...this.#configs.keys()];
  }

  get ensembles(): readonly string[] {
    return this.models.filter((name) => this.config(name).ensembleScheduling !== undefined);
  }

  config(model: string): ParsedConfig {
    return this.#configs.get(model) as ParsedConfig;
  }

  isDecoupled(model: string): boolean {
    return this.config(model).modelTransactionPolicy?.decoupled ?? false;
  }

  /** The only model of the scenario has one instance: its executions follow each other. */
  get isSerial(): boolean {
    const groups = this.config(this.scenario.id).instanceGroup as ModelConfig["instanceGroup"] | undefined;
    return this.models.length === 1 && (groups ?? []).reduce((sum, group) => sum + group.count, 0) <= 1;
  }

  modelOf(execution: ExecutionDraft): string {
    return execution.model ?? this.scenario.id;
  }

  action(id: string): Action | undefined {
    return this.scenario.actions.find((action) => action.do === "infer" && action.id === id) as Action;
  }

  response(id: string): Draft<ResponseRecord> | undefined {
    return this.outcome.responses.findLast((response) => response.id === id);
  }

  /** A parameter of a request as a model reads it: the one with its alias comes first. */
  parameter({ parameters = {} }: RequestDraft, model: string, name: string): unknown {
    const alias = this.config(model).parameters?.alias?.stringValue;
    return (alias === undefined ? undefined : parameters[`${name}_${alias}`]) ?? parameters[name];
  }

  /** Duration of an execution. */
  duration(execution: ExecutionDraft): number {
    const model = this.modelOf(execution);
    const exec = Number(this.config(model).parameters?.exec_ms?.stringValue ?? 0);
    const times = execution.requests.map((request) => {
      const answers = this.isDecoupled(model) ? Number(this.parameter(request, model, "n") ?? 1) : 1;
      const gap = Number(this.parameter(request, model, "gap") ?? 0);
      return Number(this.parameter(request, model, "sleep") ?? exec) + gap * (answers - 1);
    });
    return Math.max(0, ...times);
  }

  /** Start of an execution; where instances race, the recording does not say. */
  start(execution: ExecutionDraft): number {
    return execution.about_ms ?? this.sent(execution);
  }

  end(execution: ExecutionDraft): number {
    return this.start(execution) + this.duration(execution);
  }

  rows(request: RequestDraft, model: string): number {
    const [shape] = Object.values(request.in)[0] ?? [];
    return (this.config(model).maxBatchSize ?? 0) > 0 ? (shape?.[0] ?? 1) : 1;
  }

  statistics(model: string): Draft<StatisticsRecord> {
    const all = this.outcome.statistics as Draft<StatisticsRecord> & Record<string, Draft<StatisticsRecord>>;
    return this.scenario.extra_models === undefined ? all : (all[model] as Draft<StatisticsRecord>);
  }

  /** Counts a request as failed that the recorded server counted as served. */
  bookAsFailed(model: string, rows: number): void {
    const statistics = this.statistics(model);
    statistics.inference_count -= rows;
    for (const count of REQUEST_COUNTS) statistics[count]--;
    statistics.fail++;
  }

  /** Counts a request of an ensemble as failed: an ensemble counts executions only for requests that it answered. */
  bookEnsembleAsFailed(ensemble: string, rows: number): void {
    const statistics = this.statistics(ensemble);
    this.bookAsFailed(ensemble, rows);
    statistics.execution_count--;
    this.#countBatch(statistics, rows, -1);
  }

  /** Takes a request out of the execution in which the recorded server ran it. */
  dropFrom(execution: ExecutionDraft, id: string): void {
    const model = this.modelOf(execution);
    const statistics = this.statistics(model);
    const rows = () => execution.requests.reduce((sum, request) => sum + this.rows(request, model), 0);
    this.#countBatch(statistics, rows(), -1);
    execution.requests = execution.requests.filter((request) => request.id !== id);
    if (execution.requests.length > 0) this.#countBatch(statistics, rows(), 1);
    else {
      statistics.execution_count--;
      this.outcome.executions = this.outcome.executions.filter((other) => other !== execution);
    }
  }

  #countBatch(statistics: Draft<StatisticsRecord>, size: number, change: 1 | -1): void {
    const stats = statistics.batch_stats;
    const entry = stats.find(({ batch_size }) => batch_size === size);
    if (entry !== undefined) entry.compute_infer += change;
    else stats.push({ batch_size: size, compute_infer: change });
    statistics.batch_stats = stats
      .filter(({ compute_infer }) => compute_infer > 0)
      .sort((a, b) => a.batch_size - b.batch_size);
  }

  /** Joins two executions of one model. */
  join(first: ExecutionDraft, second: ExecutionDraft): void {
    const model = this.modelOf(first);
    const statistics = this.statistics(model);
    const rows = ({ requests }: ExecutionDraft) =>
      requests.reduce((sum, request) => sum + this.rows(request, model), 0);
    this.#countBatch(statistics, rows(first), -1);
    this.#countBatch(statistics, rows(second), -1);
    first.requests = [...first.requests, ...second.requests];
    this.#countBatch(statistics, rows(first), 1);
    statistics.execution_count--;
    this.outcome.executions = this.outcome.executions.filter((other) => other !== second);
  }

  /** Executions from `first` on start as soon as their requests have arrived and the one instance is free. */
  settleTimes(first = 0): void {
    const { executions } = this.outcome;
    let free = first === 0 ? 0 : this.end(executions[first - 1] as ExecutionDraft);
    for (const execution of executions.slice(first)) {
      execution.about_ms = Math.min(execution.about_ms, Math.max(free, this.sent(execution)));
      free = execution.about_ms + this.duration(execution);
    }
  }

  /** Time when the last request of an execution was sent. */
  sent({ requests }: ExecutionDraft): number {
    return Math.max(...requests.map(({ id }) => this.action(id)?.at_ms ?? 0));
  }

  /** Writes `OUT` of every executed request anew: place of the execution and of the request, requests, rows. */
  retell(): void {
    for (const [index, { requests }] of this.outcome.executions.entries()) {
      const rows = requests.map((request) => this.rows(request, this.scenario.id));
      const total = rows.reduce((sum, count) => sum + count, 0);
      for (const [position, { id }] of requests.entries()) {
        const out = this.response(id)?.outputs?.OUT;
        if (out === undefined) continue;
        const one = [index, position, requests.length, total];
        out.data = Array.from({ length: out.data.length / 4 }, () => one).flat();
      }
    }
  }

  /** Moves the arrival of an answer to another time. */
  arriveAt(id: string, ms: number): void {
    const order = this.outcome.arrival_order;
    if (typeof order === "string") return;
    const groups = order.map((ids) => ids.filter((other) => other !== id)).filter((ids) => ids.length > 0);
    const timeOf = (other: string) => (this.response(other) as { about_ms?: number }).about_ms ?? 0;
    const joined = groups.find((ids) => ids.some((other) => Math.abs(timeOf(other) - ms) <= GROUP_GAP_MS));
    const response = this.response(id) as { about_ms?: number } | undefined;
    if (response !== undefined) response.about_ms = ms;
    if (joined !== undefined) joined.push(id);
    else {
      const place = groups.findIndex((ids) => ids.every((other) => timeOf(other) > ms));
      groups.splice(place < 0 ? groups.length : place, 0, [id]);
    }
    this.outcome.arrival_order = groups;
  }
}
