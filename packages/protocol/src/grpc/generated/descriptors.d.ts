/** A file of the protocol. `bytes`: its google.protobuf.FileDescriptorProto in base64. */
export interface FileDescriptor {
  readonly name: string;
  readonly services: readonly string[];
  readonly symbols: readonly string[];
  readonly bytes: string;
}
export const descriptors: readonly FileDescriptor[];
