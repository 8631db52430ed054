import { errorFor, type ModelConfig } from "@tritonjs/protocol";
import { PAD_INPUTS } from "../config/model-options.js";
import type { BackendFactory, ModelFiles, ParameterTable, ParameterUse } from "../instance/backend.js";

/** Parameter of a configuration as served that says what a model stands for. */
export const SUBSTITUTED = "substitute";

/** Begins paths of a configuration that are below the directory of the model, as in Triton. */
export const MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";

/** Where a backend finds its parameters. */
interface ParameterSource {
  readonly config: Pick<ModelConfig, "parameters">;
  /** Settings of the backend, which stand for parameters that the configuration lacks. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * The parameters that a backend reads, each with what its text names. A backend can read only what it declares.
 *
 * @example
 * ```ts
 * const PARAMETERS = new DeclaredParameters({ read: ["vocabulary"], value: ["beam"] });
 * const decoder = PARAMETERS.declaredBy((source) => open(PARAMETERS.text(source, "vocabulary")));
 * ```
 */
export class DeclaredParameters<K extends string> {
  /** What each parameter names. */
  readonly own: ParameterTable;

  constructor(names: Readonly<Partial<Record<ParameterUse, readonly K[]>>>) {
    const rows = Object.entries(names).flatMap(([use, of]) => of.map((name) => [name, use]));
    this.own = Object.fromEntries(rows) as ParameterTable;
  }

  /**
   * A parameter of the configuration, or the setting of the backend by the same name with hyphens.
   *
   * @throws TritonError INTERNAL for a parameter that is not declared
   */
  text({ config, settings = {} }: ParameterSource, name: K): string | undefined {
    this.#assertDeclared(name);
    return config.parameters[name]?.stringValue ?? settings[name.replaceAll("_", "-")];
  }

  /** The parameters of the configuration that begin as rows such as `session.*` do. */
  texts({ config }: ParameterSource, ...rows: readonly K[]): [name: string, text: string][] {
    for (const row of rows) this.#assertDeclared(row);
    return Object.entries(config.parameters)
      .filter(([name]) => rows.some((row) => name.startsWith(row.slice(0, -1))))
      .map(([name, { stringValue }]) => [name, stringValue]);
  }

  #assertDeclared(name: K): void {
    if (Object.hasOwn(this.own, name)) return;
    throw errorFor("INTERNAL", `parameter '${name}': expected one that the backend declares`);
  }

  /** Makes a factory declare its own parameters. {@link SHARED_PARAMETERS} are added to those of every backend. */
  declaredBy(
    create: (source: ModelFiles) => ReturnType<BackendFactory>,
    acceleratorParameters: ParameterTable = {},
  ): BackendFactory {
    const declared = { parameters: this.own, acceleratorParameters };
    return Object.assign((source: ModelFiles) => create(source), declared);
  }
}

/** Parameters of models of any backend, and of ensembles. Extensions declare theirs. */
export const SHARED_PARAMETERS = new DeclaredParameters<string>({
  value: [
    "isolation",
    "heap_limit_mb",
    "execution_timeout_ms",
    "load_timeout_seconds",
    SUBSTITUTED,
    PAD_INPUTS,
  ],
});

/** What a parameter names, by the row with its name, else by the longest row with its beginning. */
export function useOf(table: ParameterTable, name: string): ParameterUse | undefined {
  if (Object.hasOwn(table, name)) return table[name];
  const rows = Object.keys(table).filter((row) => row.endsWith("*") && name.startsWith(row.slice(0, -1)));
  return rows.length === 0 ? undefined : table[rows.reduce((a, b) => (b.length > a.length ? b : a))];
}
