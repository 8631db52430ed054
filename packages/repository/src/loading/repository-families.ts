import type { CollectedFamily } from "@tritonjs/core/extension";

/** Failures in the model repositories since the start. */
export interface RepositoryFailures {
  /** Each model whose directory exists. */
  models(): readonly FailedLoads[];
  /** Polls in which a repository or the directory of a model had an error. */
  readonly polls: number;
}

/** The failed loads of a model. */
export interface FailedLoads {
  readonly model: string;
  readonly count: number;
  /** Whether the present files could not be loaded. Older versions may be in service. */
  readonly isFailing: boolean;
}

/** Metric families of the model repositories. They are specific to this library. */
export function repositoryFamilies(failures: () => RepositoryFailures): CollectedFamily[] {
  return [
    {
      name: "tritonjs_model_load_failure_total",
      help: "Number of times that the model could not be loaded from its repository",
      type: "counter",
      collect: () =>
        failures()
          .models()
          .map(({ model, count }) => ({ labels: { model }, value: count })),
    },
    {
      name: "tritonjs_model_load_failing",
      help: "1 while the present files of the model could not be loaded, whether or not older versions serve",
      type: "gauge",
      collect: () =>
        failures()
          .models()
          .map(({ model, isFailing }) => ({
            labels: { model },
            value: isFailing ? 1 : 0,
          })),
    },
    {
      name: "tritonjs_repository_poll_failure_total",
      help: "Number of polls in which a repository or the directory of a model had an error",
      type: "counter",
      collect: () => [{ labels: {}, value: failures().polls }],
    },
  ];
}
