import { BlockList, isIP } from 'node:net';

const NOT_PUBLIC_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local, and where clouds serve the credentials of a machine.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  // Protocols, examples and benchmarks.
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast, reserved, broadcast.
  ['224.0.0.0', 3],
] as const;

/** In a network that has only IPv6, NAT64 reaches every IPv4 address by these, and the resolver returns them for names. */
const NAT64 = '64:ff9b::';
const NAT64_BITS = 96;

/** The addresses that may be public. Everything else of IPv6 is not: site-local, unique local, IPv4 written as IPv6. */
const GLOBAL_IPV6 = new BlockList();
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6');
GLOBAL_IPV6.addSubnet(NAT64, NAT64_BITS, 'ipv6');

const NOT_PUBLIC = new BlockList();
for (const [network, bits] of NOT_PUBLIC_IPV4) {
  NOT_PUBLIC.addSubnet(network, bits, 'ipv4');
  NOT_PUBLIC.addSubnet(NAT64 + network, NAT64_BITS + bits, 'ipv6');
}
for (const [network, bits] of [
  // Protocols, among them a tunnel to any IPv4 address.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4, another tunnel.
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  NOT_PUBLIC.addSubnet(network, bits, 'ipv6');

/**
 * Checks an IP address.
 *
 * @returns Whether it can only belong to a host on the public Internet.
 */
export function isPublicAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 4) return !NOT_PUBLIC.check(address, 'ipv4');
  return version === 6 && GLOBAL_IPV6.check(address, 'ipv6') && !NOT_PUBLIC.check(address, 'ipv6');
}
