import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from '@whoa/core/addresses';

/** Thrown when a host is, or resolves to, an address inside a private network. Nothing was sent. */
export class PrivateAddressError extends Error {
  override readonly name: string = 'PrivateAddressError';
  readonly code: string = 'PRIVATE_ADDRESS';

  constructor(host: string, address: string) {
    super(`${host} has the address ${address}, which is not public; set allowPrivateAddresses if you mean it`);
  }
}

/** Throws if a host is written as an address that is not public. Names are checked when they are resolved. */
export function checkHost(hostname: string): void {
  const address = hostname.replace(/^\[|\]$/g, '');
  if (isIP(address) !== 0 && !isPublicAddress(address)) throw new PrivateAddressError(hostname, address);
}

/**
 * Creates a resolver for sockets that refuses a name if any of its addresses is not public. The socket connects to what
 * this returns, so a name that resolves differently the next time changes nothing.
 */
export function createPublicLookup(lookup: LookupFunction = systemLookup as LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = Array.isArray(found) ? found : [];
      const inside = addresses.find(({ address }) => !isPublicAddress(address));
      const refused = error ?? (inside && new PrivateAddressError(hostname, inside.address));
      if (refused || addresses.length === 0) callback(refused ?? new Error(`${hostname} has no address`), []);
      else if (options.all === true) callback(null, addresses);
      else callback(null, addresses[0]!.address, addresses[0]!.family);
    });
  };
}
