import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Names that resolve only inside a network. */
const HOME =
  /^localhost$|\.(localhost|localdomain|local|internal|intranet|private|corp|lan|home|home\.arpa|test|invalid)$/i;

/** Whether a host name means this machine. `hostname` in a URL's form: lower case, IPv6 in brackets. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

/** Whether the service can deliver to this address: https, and no name or address that only this network knows. */
export function isPublicAddress(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  if (protocol !== 'https:' || HOME.test(hostname.replace(/\.$/, ''))) return false;
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? host.includes('.') : !isPrivateIp(host);
}

/** Whether an address is unreachable from the internet. `ip` without brackets; true for what is no address. */
export function isPrivateIp(ip: string): boolean {
  if (isIP(ip) === 0 || !ipaddr.isValid(ip)) return true;
  const address = ipaddr.process(ip);
  return address instanceof ipaddr.IPv6 ? isPrivateIpv6(address) : isPrivateIpv4(address);
}

/** For benchmarks (RFC 2544); the package lacks this range. */
const BENCHMARKS = ipaddr.IPv4.parseCIDR('198.18.0.0/15');

function isPrivateIpv4(address: ipaddr.IPv4): boolean {
  return address.range() !== 'unicast' || address.match(BENCHMARKS);
}

/** A network without IPv4 reaches all of IPv4 here (NAT64, RFC 6052). */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');
/** The range that IANA has allocated. */
const GLOBAL = ipaddr.IPv6.parseCIDR('2000::/3');
/** Protocol assignments (RFC 2928) and documentation (RFC 9637), which the package lacks. */
const SPECIAL = ['2001::/23', '3fff::/20'].map((range) => ipaddr.IPv6.parseCIDR(range));

function isPrivateIpv6(address: ipaddr.IPv6): boolean {
  if (address.match(NAT64)) return isPrivateIpv4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  const isGlobal = address.match(GLOBAL) && address.range() === 'unicast';
  return !isGlobal || SPECIAL.some((range) => address.match(range));
}
