/** Value of a request or response parameter. Integers outside the safe range are bigints. */
export type ParameterValue = string | number | bigint | boolean;

/** Named parameters of a request or a response. */
export type Parameters = Readonly<Record<string, ParameterValue>>;

/** No parameters. Shared, so that a request without parameters allocates nothing. */
export const NO_PARAMETERS: Parameters = Object.freeze({});
