import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Bus } from './bus.ts';

const CIPHER = 'aes-256-gcm';
const SECRET_BYTES = 32;
const SENDER_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = SENDER_BYTES + NONCE_BYTES + TAG_BYTES;
/** How many keys are remembered. A key can always be derived again. */
const MAX_KEYS = 1_000;

/**
 * Seals the messages of a bus to which others can listen and send. The inbox in the store is the address on the bus and a
 * secret, which no message contains. The key of a message is derived from its receiver's secret and its sender's random
 * id, so a sender never uses a nonce twice, and no one can send to an inbox without having read it in the store.
 *
 * @returns A bus whose messages others can neither read nor forge. They can still lose or repeat them.
 */
export function sealBus(bus: Bus): Bus {
  const secret = randomBytes(SECRET_BYTES);
  const sender = randomBytes(SENDER_BYTES);
  const keys = new Map<string, Buffer>();
  let sent = 0n;

  const findKey = (ofReceiver: Buffer, ofSender: Buffer): Buffer => {
    const name = `${ofReceiver.toString('base64url')} ${ofSender.toString('base64url')}`;
    const key = keys.get(name) ?? Buffer.from(hkdfSync('sha256', ofReceiver, ofSender, 'whoa bus', 32));
    if (keys.size >= MAX_KEYS) keys.clear();
    keys.set(name, key);
    return key;
  };
  const seal = (address: string, ofReceiver: Buffer, message: Uint8Array): Buffer => {
    const nonce = Buffer.alloc(NONCE_BYTES);
    nonce.writeBigUInt64BE(++sent, NONCE_BYTES - 8);
    const cipher = createCipheriv(CIPHER, findKey(ofReceiver, sender), nonce).setAAD(Buffer.from(address));
    const text = Buffer.concat([cipher.update(message), cipher.final()]);
    return Buffer.concat([sender, nonce, cipher.getAuthTag(), text]);
  };
  const open = (given: Uint8Array): Buffer | undefined => {
    const sealed = Buffer.from(given);
    if (sealed.length < HEAD_BYTES) return undefined;
    const nonce = sealed.subarray(SENDER_BYTES, SENDER_BYTES + NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, findKey(secret, sealed.subarray(0, SENDER_BYTES)), nonce);
    decipher.setAAD(Buffer.from(bus.inbox)).setAuthTag(sealed.subarray(HEAD_BYTES - TAG_BYTES, HEAD_BYTES));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(HEAD_BYTES)), decipher.final()]);
    } catch {
      // Forged, or meant for another inbox.
      return undefined;
    }
  };
  return {
    inbox: `${bus.inbox}.${secret.toString('base64url')}`,
    send(inbox, message) {
      const dot = inbox.lastIndexOf('.');
      const ofReceiver = Buffer.from(inbox.slice(dot + 1), 'base64url');
      if (dot < 1 || ofReceiver.length !== SECRET_BYTES) return true;
      const address = inbox.slice(0, dot);
      return bus.send(address, seal(address, ofReceiver, message));
    },
    receive: (listener) =>
      bus.receive((sealed) => {
        const message = open(sealed);
        if (message !== undefined) listener(message);
      }),
    onGap: (listener) => bus.onGap(listener),
    [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose](),
  };
}
