/** Loads only models that somebody of this list has approved. */
const APPROVERS = ["ada", "grace"];

export function LOAD({ modelName, parameters }) {
  const { approved_by: person } = parameters;
  if (!APPROVERS.includes(person)) {
    throw new Error(
      `model '${modelName}': expected approved_by to be one of ${APPROVERS.join(", ")}, got ${person}`,
    );
  }
}
