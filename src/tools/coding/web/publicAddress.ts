/**
 * Distinguishes public network addresses from those of this machine and of private networks. Rule: an address is public only if
 * it is an IP address outside of every listed range. An IPv6 address that holds an IPv4 address is public if the IPv4 address is.
 */
import { BlockList, isIP, isIPv6 } from 'node:net';

/** Ranges that no web server on the internet has (IANA special-purpose registries), and multicast. */
const RANGES_4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32`;
const RANGES_6 = `::/128 ::1/128 ::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10
  ff00::/8`;
/** Prefixes whose addresses hold an IPv4 address, with the bit where it begins. */
const HOLDING_4 = [
  ['::ffff:0:0', 96, 96],
  ['64:ff9b::', 96, 96],
  ['2002::', 16, 16],
] as const;

function listOf(ranges: string, family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of ranges.trim().split(/\s+/)) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
const private4 = listOf(RANGES_4, 'ipv4');
const private6 = listOf(RANGES_6, 'ipv6');
const holding4 = HOLDING_4.map(([prefix, bits, at]) => ({ list: listOf(`${prefix}/${bits}`, 'ipv6'), at }));

/** False for everything that is no IP address. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/%.*$/, '');
  if (isIP(bare) === 0 || bare !== address) return false;
  if (!isIPv6(address)) return !private4.check(address, 'ipv4');
  const held = holding4.find(({ list }) => list.check(address, 'ipv6'));
  if (held) return isPublicAddress(heldAddress(address, held.at));
  // Only this range is assigned to networks of the internet.
  return /^[23]/.test(fieldsOf(address)[0] ?? '') && !private6.check(address, 'ipv6');
}

/** The eight fields of an IPv6 address, as four hexadecimal digits each. */
function fieldsOf(address: string): string[] {
  const [, bytes = ''] = /:(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? [];
  const [a = 0, b = 0, c = 0, d = 0] = bytes.split('.').map(Number);
  const hex =
    bytes === '' ? address : address.replace(bytes, `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`);
  const [head = '', tail] = hex.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = new Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0');
  return [...before, ...(tail === undefined ? [] : zeros), ...after].map((field) => field.padStart(4, '0'));
}

function heldAddress(address: string, bit: number): string {
  const digits = fieldsOf(address)
    .join('')
    .slice(bit / 4, bit / 4 + 8);
  return [0, 2, 4, 6].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)).join('.');
}
