import { BlockList, isIP } from 'node:net';

/** Addresses that nobody on the internet can reach (the special-purpose registries of RFC 6890; of IPv6 2000::/3 is given out). */
const PRIVATE = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.addSubnet(net, prefix, 'ipv4');
  // The same by way of NAT64 (RFC 6052): a network without IPv4 reaches the whole of it there.
  PRIVATE.addSubnet(`64:ff9b::${net}`, 96 + prefix, 'ipv6');
}
for (const [net, prefix] of [
  ['::', 96],
  ['::ffff:0:0:0', 96],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
  ['4000::', 2],
  ['8000::', 1],
] as const) {
  PRIVATE.addSubnet(net, prefix, 'ipv6');
}

/** Names that only resolve at home. */
const HOME =
  /^localhost$|\.(localhost|localdomain|local|internal|intranet|private|corp|lan|home|home\.arpa|test|invalid)$/i;

/** Whether a host is this machine by its very name. `hostname` as a URL has it: lower case, IPv6 in brackets. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** Whether the service can deliver there: https, and no name or address that only this network knows. */
export function isPublicAddress(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  if (protocol !== 'https:' || HOME.test(hostname.replace(/\.$/, ''))) return false;
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? host.includes('.') : !isPrivateIp(host);
}

/** Whether nobody on the internet can reach this address. `ip` without brackets; what is no address is not reached. */
export function isPrivateIp(ip: string): boolean {
  const version = isIP(ip);
  return version === 0 || PRIVATE.check(ip, version === 6 ? 'ipv6' : 'ipv4');
}
