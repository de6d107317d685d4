/** The first and the last address of each range that is not public, and their neighbours outside. */
import { BlockList } from 'node:net';
import { expect, test } from 'vitest';
import { isPublicAddress } from '../../../src/tools/coding/web/publicAddress.ts';

/** Ranges of the IANA registries for special purposes, with multicast and the address of a cloud's own host. */
const RANGES: readonly (readonly [first: string, last: string])[] = [
  ['0.0.0.0', '0.255.255.255'],
  ['10.0.0.0', '10.255.255.255'],
  ['100.64.0.0', '100.127.255.255'],
  ['127.0.0.0', '127.255.255.255'],
  ['169.254.0.0', '169.254.255.255'],
  ['172.16.0.0', '172.31.255.255'],
  ['192.0.0.0', '192.0.0.255'],
  ['192.0.2.0', '192.0.2.255'],
  ['192.88.99.0', '192.88.99.255'],
  ['192.168.0.0', '192.168.255.255'],
  ['198.18.0.0', '198.19.255.255'],
  ['198.51.100.0', '198.51.100.255'],
  ['203.0.113.0', '203.0.113.255'],
  ['224.0.0.0', '255.255.255.255'],
  ['168.63.129.16', '168.63.129.16'],
  ['::', '::ffff:ffff'],
  ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff'],
  ['100::', '100::ffff:ffff:ffff:ffff'],
  ['2001::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['3fff::', '3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['5f00::', '5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fe80::', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ['ff00::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
];
const listed = new BlockList();
for (const [first, last] of RANGES) listed.addRange(first, last, first.includes(':') ? 'ipv6' : 'ipv4');

const bytesOf = (address: string): bigint =>
  address.split('.').reduce((number, part) => number * 256n + BigInt(part), 0n);
const textOf = (number: bigint): string => [24n, 16n, 8n, 0n].map((shift) => (number >> shift) & 255n).join('.');

test.each(RANGES)('no address from %s to %s is public', (first, last) => {
  expect([first, last].map(isPublicAddress)).toEqual([false, false]);
  if (first.includes(':')) return;
  const middle = (bytesOf(first) + bytesOf(last)) / 2n;
  expect(isPublicAddress(textOf(middle))).toBe(false);
});

test('the neighbours of these ranges are public, unless they lie in another range', () => {
  const neighbours = RANGES.filter(([first]) => !first.includes(':'))
    .flatMap(([first, last]) => [bytesOf(first) - 1n, bytesOf(last) + 1n])
    .filter((number) => number >= 0n && number <= 0xffff_ffffn)
    .map(textOf)
    .filter((address) => !listed.check(address));
  expect(neighbours.length).toBeGreaterThan(20);
  expect(neighbours.filter((address) => !isPublicAddress(address))).toEqual([]);
  const held = neighbours.flatMap((address) => [`::ffff:${address}`, `64:ff9b::${address}`]);
  expect(held.filter((address) => !isPublicAddress(address))).toEqual([]);
});

test.each(['2001:200::', '2001:db7:ffff::', '2001:db9::', '2000::', '2003::1', '3ffe:ffff::', '2a00::'])(
  '%s is public, beside ranges that are not',
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);
test.each(['4000::', '64:ff9a::1', '6000::1', 'fbff::1', '1fff::1'])(
  '%s is outside of the addresses that are handed out, and not public',
  (address) => {
    expect(isPublicAddress(address)).toBe(false);
  },
);
