import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';

type Metadata = SharedV4ProviderMetadata;

/** What must be returned to a provider unchanged, with a block of thinking or with a call. */
export interface Signed {
  readonly metadata: Metadata;
  /** Set when it belongs to a call and not to a thought: Gemini signs its calls. */
  readonly callId?: string;
}

/** Encodes provider metadata as the one opaque string that a transcript keeps. */
export function encodeSignature(signed: Signed): string {
  return JSON.stringify(signed);
}

/** Decodes a signature. Returns `undefined` for one that another adapter made. */
export function decodeSignature(signature: string): Signed | undefined {
  try {
    const signed = JSON.parse(signature) as Partial<Signed> | null;
    return typeof signed === 'object' && typeof signed?.metadata === 'object' ? (signed as Signed) : undefined;
  } catch {
    return undefined;
  }
}

/** Later metadata wins, field by field, per provider. */
export function mergeMetadata(a: Metadata | undefined, b: Metadata | undefined): Metadata {
  const merged: Metadata = { ...a };
  for (const [provider, fields] of Object.entries(b ?? {})) merged[provider] = { ...merged[provider], ...fields };
  return merged;
}

/** Whether the provider can verify the metadata by itself. An item that it stored may not exist for a reply that was cut off. */
export function isProof(metadata: Metadata): boolean {
  return Object.values(metadata).some((fields) =>
    Object.entries(fields).some(([name, value]) => value != null && name !== 'itemId'),
  );
}

/** Whether a call must be replayed with its metadata. */
export function hasThoughtSignature(metadata: Metadata | undefined): metadata is Metadata {
  return Object.values(metadata ?? {}).some((fields) => fields['thoughtSignature'] != null);
}
