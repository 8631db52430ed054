/** Faults of a compressed input: its output is too large, or too large for its compressed size, or its data is broken. */
export type UnpackFaultKind = "SIZE" | "RATIO" | "DATA";

/** The error of an input that cannot be unpacked. Frontends word it for their clients. */
export class UnpackFault extends Error {
  override readonly name = "UnpackFault";

  constructor(
    readonly kind: UnpackFaultKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
