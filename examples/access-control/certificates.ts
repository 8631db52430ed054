// The certificate library requires this import first.
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { cryptoProvider, SubjectAlternativeNameExtension, X509CertificateGenerator } from "@peculiar/x509";

/** A certificate with its private key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** Makes a certificate for `localhost` that signs itself, so it is also its own root. */
export async function selfSigned(name: string): Promise<Certificate> {
  cryptoProvider.set(webcrypto as never);
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys: keys as never,
    signingAlgorithm: ALGORITHM,
    extensions: [new SubjectAlternativeNameExtension([{ type: "dns", value: "localhost" }])],
  });
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const lines = der.toString("base64").replace(/.{64}/g, "$&\n");
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${lines}\n-----END PRIVATE KEY-----\n`,
  };
}
