import { isDataType, type TensorSpec, TritonError, unknownDataTypeText } from "@tritonjs/protocol";

/** Lists problems with the name and the version of a model. */
export function identityProblems(
  name: string,
  version: number,
  isTaken: (name: string, version: number) => boolean,
): string[] {
  const problems = nameProblems(name);
  if (!Number.isSafeInteger(version) || version < 1) {
    problems.push(`modelVersion: expected an integer of at least 1, got ${version}`);
  } else if (isTaken(name, version)) {
    problems.push(`model '${name}' version ${version} is already bound: choose another name or version`);
  }
  return problems;
}

/** Class names by output. */
export function labelsOf(outputs: readonly TensorSpec[] = []): Map<string, readonly string[]> {
  return new Map(outputs.flatMap(({ name, labels }) => (labels ? [[name, labels]] : [])));
}

/** Makes the error that lists all problems of a binding, one per line. */
export function bindError(modelName: string, problems: readonly string[]): TritonError {
  const lines = problems.map((problem) => `- ${problem}`).join("\n");
  return new TritonError("INVALID_ARG", `cannot bind model '${modelName}':\n${lines}`, {
    reason: "INVALID_CONFIG",
  });
}

/**
 * Lists faults that make specifications unreadable. They may come from JavaScript, where no compiler has checked them.
 */
export function specProblems(where: string, specs: unknown): string[] {
  if (specs === undefined) return [];
  if (!Array.isArray(specs)) return [`${where}: expected a list of { name, dtype, shape }`];
  return specs.flatMap((spec: Partial<TensorSpec> | null, i) => {
    if (typeof spec?.name !== "string") return [`${where}[${i}] has no name`];
    if (!Array.isArray(spec.shape))
      return [`${where}[${i}] '${spec.name}' has no shape: expected a list of dimensions`];
    return typeof spec.dtype === "string" ? [] : [`${where}[${i}] '${spec.name}' has no dtype`];
  });
}

/** Lists specifications with a data type that does not exist. */
export function dataTypeProblems(where: string, specs: readonly TensorSpec[] = []): string[] {
  return specs.flatMap(({ name, dtype }, i) =>
    isDataType(dtype) ? [] : [`${where}[${i}] '${name}' has an ${unknownDataTypeText(dtype)}`],
  );
}

/** True for the problem that the check of a configuration reports for a data type that does not exist. */
export function isDataTypeProblem(problem: string): boolean {
  return problem.includes("expected a known 'data_type'");
}

function nameProblems(name: unknown): string[] {
  if (name === "") return ["Model name cannot be empty"];
  if (typeof name !== "string" || !/^[a-zA-Z0-9._-]+$/.test(name) || name === "." || name === "..") {
    return [
      `Model name can only contain alphanumeric characters, dots, underscores and dashes, got '${String(name)}'`,
    ];
  }
  return [];
}
