import type { ServedOptions } from "../../support/served-options.js";

/** Turns the flags of a recorded server into options of the server and its repository. */
export function repositoryOptions(flags: readonly string[]): ServedOptions {
  const given = flags.map((flag) => /^--([^=]+)=(.*)$/.exec(flag)).filter((match) => match !== null);
  const values = (name: string) =>
    given.filter(([, flag]) => flag === name).map(([, , value]) => value ?? "");
  const last = (name: string) => values(name).at(-1);
  const options: Record<string, unknown> = { loadModel: values("load-model") };
  const set = (option: string, value: unknown) => {
    if (value !== undefined) options[option] = value;
  };
  const flag = (text: string | undefined) =>
    text === undefined ? undefined : text === "true" || text === "1";
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
  set("modelControlMode", last("model-control-mode"));
  set("repositoryPollSecs", number(last("repository-poll-secs")));
  set("modelLoadRetryCount", number(last("model-load-retry-count")));
  set("modelLoadThreadCount", number(last("model-load-thread-count")));
  set("modelConfigName", last("model-config-name"));
  set("exitOnError", flag(last("exit-on-error")));
  set("strictReadiness", flag(last("strict-readiness")));
  set("modelNamespacing", flag(last("model-namespacing")));
  set(
    "disableAutoCompleteConfig",
    flags.includes("--disable-auto-complete-config") || flag(last("disable-auto-complete-config")),
  );
  return options as ServedOptions;
}
