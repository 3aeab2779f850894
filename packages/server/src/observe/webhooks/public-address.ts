import { lookup as systemLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Thrown when a host is, or resolves to, an address inside a private network. Nothing was sent. */
export class PrivateAddressError extends Error {
  override readonly name: string = 'PrivateAddressError';
  readonly code: string = 'PRIVATE_ADDRESS';

  constructor(host: string, address: string) {
    super(`${host} has the address ${address}, which is not public; set allowPrivateAddresses if you mean it`);
  }
}

/** The addresses that are public or that anyone may be given; everything else of IPv6 is rejected. */
const GLOBAL_IPV6 = new BlockList();
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6');

const NOT_PUBLIC = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local, and where clouds serve the credentials of a machine.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast, reserved, broadcast.
  ['224.0.0.0', 3],
] as const)
  NOT_PUBLIC.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of [
  // Tunnels, which lead to any IPv4 address, and examples.
  ['2001::', 32],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  NOT_PUBLIC.addSubnet(network, bits, 'ipv6');

/** Returns whether an address can only belong to a host on the public Internet. */
function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !NOT_PUBLIC.check(address, 'ipv4');
  // IPv4 addresses that are written as IPv6 are outside of 2000::/3.
  return version === 6 && GLOBAL_IPV6.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6');
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
