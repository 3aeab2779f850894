/** A short text that identifies everything that was added. */
export class Digest {
  #hash = 0x811c9dc5;

  /** FNV-1a: fast, and two different simulated runs get different digests. */
  add(text: string): void {
    for (let i = 0; i < text.length; i++) this.#hash = Math.imul(this.#hash ^ text.charCodeAt(i), 0x01000193);
  }

  /** Eight characters. */
  get text(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0');
  }
}
