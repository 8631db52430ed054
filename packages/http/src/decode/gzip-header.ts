const FIXED_LENGTH = 10;
const FLAGS_AT = 3;
const HAS_CHECKSUM = 0x02;
const HAS_EXTRA = 0x04;
const HAS_NAME = 0x08;
const HAS_COMMENT = 0x10;

/**
 * Where the compressed data of a gzip member begin (RFC 1952); undefined for what is not gzip. Node's own gunzip
 * refuses a body that goes on after its last member, Triton does not.
 */
export function gzipDataStart(bytes: Uint8Array): number | undefined {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return undefined;
  const flags = bytes[FLAGS_AT] ?? 0;
  let at = FIXED_LENGTH;
  if (flags & HAS_EXTRA) at += 2 + (bytes[at] ?? 0) + ((bytes[at + 1] ?? 0) << 8);
  if (flags & HAS_NAME) at = afterNul(bytes, at);
  if (flags & HAS_COMMENT) at = afterNul(bytes, at);
  if (flags & HAS_CHECKSUM) at += 2;
  return at;
}

function afterNul(bytes: Uint8Array, at: number): number {
  const nul = bytes.indexOf(0, at);
  return nul < 0 ? bytes.length : nul + 1;
}
