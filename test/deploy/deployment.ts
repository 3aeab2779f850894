// The files of deploy/ as the tools that use them read them.
import { globSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { ROOT, read } from '../docs/pages.ts';

export interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly deploy?: { readonly replicas: number };
  readonly stop_grace_period?: string;
  readonly [field: string]: unknown;
}

export interface Compose {
  readonly services: Readonly<Record<'server' | 'worker' | 'redis' | 'postgres', Service>>;
}

/** A Kubernetes object; only the fields that we check are typed. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly selector: Readonly<Record<string, unknown>>;
    readonly template: {
      readonly metadata: { readonly labels: object; readonly annotations?: object };
      readonly spec: PodSpec;
    };
    readonly ports: readonly { readonly targetPort: string }[];
    readonly podSelector: Readonly<Record<string, unknown>>;
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
    readonly scaleTargetRef: { readonly name: string };
    readonly minReplicas: number;
    readonly metrics: readonly { readonly external: External }[];
  };
}

interface External {
  readonly metric: { readonly name: string };
  readonly target: { readonly averageValue: string };
}

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly automountServiceAccountToken: boolean;
  readonly securityContext: object;
  readonly topologySpreadConstraints: readonly { readonly topologyKey: string; readonly labelSelector: object }[];
  readonly containers: readonly Container[];
}

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe: Probe & { readonly periodSeconds: number; readonly failureThreshold: number };
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly mountPath: string }[];
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

export function readCompose(): Compose {
  return parse(read('deploy/compose.yaml'), { merge: true }) as Compose;
}

export function readManifests(): readonly Manifest[] {
  return globSync('deploy/kubernetes/*.yaml', { cwd: ROOT }).flatMap((file) => {
    const documents = parseAllDocuments(read(file));
    return documents.map((document) => {
      if (document.errors.length > 0) throw document.errors[0]!;
      return document.toJS() as Manifest;
    });
  });
}

/** Fills in variables as compose does: `${NAME:-default}`, which may contain others, and `${NAME:?message}`. */
export function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(
    /\$\{(\w+):([-?])((?:[^{}]|\{[^{}]*\})*)\}/g,
    (_whole, name: string, kind: string, rest: string) => {
      const value = variables[name];
      if (value === undefined && kind === '?') throw new Error(`${name}: ${rest}`);
      return value ?? interpolate(rest, variables);
    },
  );
}
