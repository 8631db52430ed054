/** A request of the v2 protocol's JSON form. */
export interface InferBody {
  readonly inputs: readonly {
    readonly name: string;
    readonly datatype: "FP32";
    readonly shape: readonly number[];
    readonly data: readonly number[];
  }[];
}

/** A request of the generate extension. */
export interface GenerateBody {
  readonly INPUT0: readonly number[];
}

/** One step of a scripted traffic. */
export interface TrafficStep {
  /** Path of an HTTP request. */
  readonly POST?: string;
  readonly body?: InferBody | GenerateBody;
  /** @default 1 */
  readonly times?: number;
  /** The next step does not wait for the answer. */
  readonly background?: true;
  readonly status?: number;
  readonly response?: { readonly error?: string } | null;
  /** Model of a gRPC request, its input in `INPUT0` as nested arrays. */
  readonly "gRPC ModelInfer"?: string;
  readonly INPUT0?: readonly (readonly number[])[];
  readonly client_deadline_seconds?: number;
  readonly sleep_seconds?: number;
  /** Waits for all answers. */
  readonly join?: true;
}

/** Common fields of `metrics.jsonl` and `statistics.jsonl`. */
export interface TrafficCase {
  readonly id: string;
  readonly flags: readonly string[];
  /** Files by path. */
  readonly repository: Readonly<Record<string, string>>;
  readonly traffic: readonly TrafficStep[];
}

/** One line of `config/metrics.jsonl`. */
export interface MetricsCase extends TrafficCase {
  readonly metrics_at_start: readonly string[];
  readonly metrics_after: readonly string[];
  /** Series that changed and do not measure time. */
  readonly changed_exact: Readonly<Record<string, string>>;
  readonly metrics_during?: readonly {
    readonly after_traffic_items: number;
    readonly pending: readonly string[];
  }[];
}

/** One line of `config/statistics.jsonl`. */
export interface StatisticsCase extends TrafficCase {
  readonly snapshots: readonly {
    readonly when: string;
    readonly "GET /v2/models/stats"?: StatisticsSnapshot;
  }[];
}

/** Statistics of all models as HTTP shows them. */
export interface StatisticsSnapshot {
  readonly model_stats: readonly {
    readonly name: string;
    readonly version: string;
    readonly inference_count: number;
    readonly execution_count: number;
    readonly inference_stats: Readonly<Record<string, { readonly count: number }>>;
    readonly batch_stats: readonly {
      readonly batch_size: number;
      readonly compute_infer: { readonly count: number };
    }[];
  }[];
}

/** The configuration texts of a case's repository by model name, and the versions on disk. */
export function repositoryModels(
  repository: TrafficCase["repository"],
): Record<string, { config_pbtxt: string; versions: number[] }> {
  const models: Record<string, { config_pbtxt: string; versions: number[] }> = {};
  for (const [path, text] of Object.entries(repository)) {
    const [name = "", rest = ""] = path.split("/");
    models[name] ??= { config_pbtxt: "", versions: [] };
    if (rest === "config.pbtxt") models[name].config_pbtxt = text;
    else models[name].versions.push(Number(rest));
  }
  return models;
}
