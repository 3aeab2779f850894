import type { Bus } from './bus.ts';
import { RedisBus, type RedisBusConfig } from './redis-bus.ts';
import { sealBus } from './sealed-bus.ts';

/** A bus, and its kind, which is part of the inboxes in the store. */
interface OpenedBus {
  readonly kind: string;
  readonly bus: Bus;
}

/** Opens the bus of a store. `own`: the store's, which only its processes can use. Others are sealed. */
export function openBus(
  given: string | RedisBusConfig | Bus | undefined,
  own: { readonly kind: string; readonly open: () => Bus },
): OpenedBus {
  if (given === undefined) return { kind: own.kind, bus: own.open() };
  if (isBus(given)) return { kind: 'custom', bus: sealBus(given) };
  const config = typeof given === 'string' ? { url: given } : given;
  return { kind: 'redis', bus: sealBus(new RedisBus(config)) };
}

export function isBus(given: unknown): given is Bus {
  return typeof (given as Partial<Bus> | null)?.receive === 'function';
}
