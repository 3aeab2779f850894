import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate for 127.0.0.1 that vouches for itself, in a folder that the caller removes. */
export function createCertificate(folder: string): {
  readonly key: string;
  readonly cert: string;
  readonly pem: string;
} {
  const [key, cert] = [join(folder, 'server.key'), join(folder, 'server.crt')];
  const about = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const kind = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1'];
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, ...about], { stdio: 'ignore' });
  return { key, cert, pem: readFileSync(cert, 'utf8') };
}
