import { expect, test } from 'vitest';
import { isPublicAddress } from './public-address.ts';

test.each([
  ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1', '100.64.0.1', 'fc00::1', 'fd00::1']],
  ['of this machine', ['0.0.0.0', '127.0.0.1', '127.255.255.255', '::', '::1']],
  ['link-local or site-local', ['169.254.169.254', 'fe80::1', 'fec0::1']],
  [
    'for protocols, examples or benchmarks',
    ['192.0.0.192', '192.0.2.1', '198.18.0.1', '198.19.255.255', '203.0.113.1'],
  ],
  ['for protocols and examples of IPv6', ['2001::1', '2001:2::1', '2001:10::1', '2001:db8::1', '3fff::1']],
  ['multicast or reserved', ['224.0.0.1', '240.0.0.1', '255.255.255.255', 'ff02::1']],
  ['private by NAT64', ['64:ff9b::a9fe:a9fe', '64:ff9b::10.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b:1::8.8.8.8']],
  ['behind a tunnel', ['2002:a9fe:a9fe::1', '2002:808:808::1', '2001:0:a9fe:a9fe::1']],
  ['IPv4 written as IPv6', ['::ffff:169.254.169.254', '::ffff:8.8.8.8', '::ffff:0:8.8.8.8', '::8.8.8.8']],
  ['not an address', ['', 'localhost', 'example.com', '127.1', '2130706433', '8.8.8.8/32', ' 8.8.8.8', 'fe80::1%eth0']],
])('addresses that are %s are not public', (_kind, addresses) => {
  expect(addresses.filter(isPublicAddress)).toEqual([]);
});

test('addresses of the Internet are public, also where NAT64 is the way to them', () => {
  const addresses = ['8.8.8.8', '93.184.215.14', '172.32.0.1', '2606:2800:21f:cb07::1', '64:ff9b::808:808'];
  expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([]);
});
