/** A range of a registered region. */
export interface RegionPart {
  readonly region: string;
  readonly offset: number;
  readonly byteSize: number;
}

/** Where the tensors of a payload lie in shared memory. */
export interface SharedPayload {
  readonly inputs: ReadonlyMap<string, RegionPart>;
  readonly outputs: ReadonlyMap<string, RegionPart>;
}
