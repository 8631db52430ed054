import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A certificate with its private key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A root, and certificates that it signed for `localhost` and for a client. */
export interface Certificates {
  readonly ca: string;
  readonly server: Certificate;
  readonly client: Certificate;
  /** Signed by itself. */
  readonly stranger: Certificate;
}

/** Makes certificates that nobody else has. */
export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), "tritonjs-certificates-"));
  const openssl = (...args: string[]) => promisify(execFile)("openssl", args, { cwd: folder });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const selfSigned = async (name: string): Promise<Certificate> => {
    const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`];
    await openssl("req", "-x509", ...newKey, ...files, "-subj", `/CN=${name}`, "-days", "2");
    return read(folder, name);
  };
  const signed = async (name: string): Promise<Certificate> => {
    const files = ["-keyout", `${name}.key`, "-out", `${name}.csr`];
    await openssl("req", ...newKey, ...files, "-subj", `/CN=${name}`);
    await writeFile(join(folder, "names.txt"), "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1");
    const issuer = ["-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial"];
    const request = ["-in", `${name}.csr`, "-extfile", "names.txt", "-days", "2"];
    await openssl("x509", "-req", ...request, ...issuer, "-out", `${name}.pem`);
    return read(folder, name);
  };
  try {
    const root = await selfSigned("root");
    return {
      ca: root.cert,
      server: await signed("server"),
      client: await signed("client"),
      stranger: await selfSigned("stranger"),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function read(folder: string, name: string): Promise<Certificate> {
  const [cert, key] = await Promise.all(
    ["pem", "key"].map((extension) => readFile(join(folder, `${name}.${extension}`), "utf8")),
  );
  return { cert: cert!, key: key! };
}
