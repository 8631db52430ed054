import type { Behaviour } from "./behaviour.js";
import { mapInt32 } from "./tensors.js";

/** OUTPUT0 is INPUT0 times the number of the version. */
const timesVersion: Behaviour = ({ inputs: { INPUT0 } }, { version }) => ({
  OUTPUT0: mapInt32(INPUT0, (value) => value * version),
});

/** The models of the repository with which the model control cases were recorded. */
export const repositoryBehaviours: Readonly<Record<string, Behaviour>> = {
  ex_a: timesVersion,
  ex_b: timesVersion,
  brand_new: timesVersion,
};
