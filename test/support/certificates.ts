// The certificate library requires this import first.
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import {
  BasicConstraintsExtension,
  cryptoProvider,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

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
  /** Self-signed. */
  readonly stranger: Certificate;
}

type Keys = webcrypto.CryptoKeyPair;

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes unique certificates. */
export async function makeCertificates(): Promise<Certificates> {
  cryptoProvider.set(webcrypto as never);
  const rootKeys = await newKeys();
  const root = await X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: "CN=root",
    keys: rootKeys as never,
    signingAlgorithm: ALGORITHM,
    extensions: [new BasicConstraintsExtension(true)],
  });
  const signed = async (name: string): Promise<Certificate> => {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create({
      ...validity(),
      subject: `CN=${name}`,
      issuer: root.subject,
      publicKey: keys.publicKey as never,
      signingKey: rootKeys.privateKey as never,
      signingAlgorithm: ALGORITHM,
      extensions: [localhostNames()],
    });
    return pem(certificate, keys);
  };
  return {
    ca: root.toString("pem"),
    server: await signed("server"),
    client: await signed("client"),
    stranger: await selfSigned("stranger"),
  };
}

async function selfSigned(name: string): Promise<Certificate> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: `CN=${name}`,
    keys: keys as never,
    signingAlgorithm: ALGORITHM,
  });
  return pem(certificate, keys);
}

function newKeys(): Promise<Keys> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as Promise<Keys>;
}

function validity(): { notBefore: Date; notAfter: Date; serialNumber: string } {
  const serialNumber = Buffer.from(webcrypto.getRandomValues(new Uint8Array(8))).toString("hex");
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS), serialNumber };
}

function localhostNames(): SubjectAlternativeNameExtension {
  return new SubjectAlternativeNameExtension([
    { type: "dns", value: "localhost" },
    { type: "ip", value: "127.0.0.1" },
    { type: "ip", value: "::1" },
  ]);
}

async function pem(certificate: X509Certificate, { privateKey }: Keys): Promise<Certificate> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", privateKey));
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}
