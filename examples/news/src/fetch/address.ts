/**
 * Which addresses a fetcher may reach: public ones. A feed that redirects to 127.0.0.1, or a name that resolves to
 * 10.0.0.1, would let whoever writes the feed ask questions of our own network.
 *
 * The check is made where the connection is made: of the very address that the socket goes to. A check of the name
 * beforehand could be answered differently the second time (DNS rebinding).
 */
import { lookup as systemLookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { BlockList, isIP } from 'node:net';

const refused = new BlockList();
// IANA's special-purpose registries: this network, private, shared, loopback, link-local, documentation, multicast..
for (const range of [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4',
]) {
  const [net, bits] = range.split('/');
  refused.addSubnet(net as string, Number(bits), 'ipv4');
}
// Of IPv6 only global unicast is allowed, and of that not what carries an IPv4 address or is for documentation.
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');
for (const [net, bits] of [['2001::', 23], ['2001:db8::', 32], ['2002::', 16], ['3fff::', 20]] as const) refused.addSubnet(net, bits, 'ipv6');

export class PrivateAddress extends Error {}

/** Whether an IP address is on the public internet. */
export function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !refused.check(address, 'ipv4');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped) return isPublic(mapped);
  return family === 6 && global6.check(address, 'ipv6') && !refused.check(address, 'ipv6');
}

type LookupCallback = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/** A lookup for `http.request` that gives public addresses only. `resolve` is the system's unless a test has another. */
export function publicLookup(resolve: typeof systemLookup = systemLookup) {
  return (host: string, options: LookupOptions, callback: LookupCallback): void => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      const list = addresses as LookupAddress[];
      const bad = list.find(({ address }) => !isPublic(address));
      const first = list[0];
      if (bad || !first) return callback(new PrivateAddress(`${host} is on a private network`), []);
      if (options.all) callback(null, list);
      else callback(null, first.address, first.family);
    });
  };
}

/** For origins that tests allow: names below `localhost` are this machine, whatever the system's resolver says of them. */
export function localLookup(host: string, options: LookupOptions, callback: LookupCallback): void {
  if (!host.endsWith('.localhost')) return publicLookup()(host, options, callback);
  if (options.all) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
}

/**
 * Refuses what cannot be fetched at all: other schemes, names and passwords in the address, private addresses.
 * `allowed` are origins that tests fetch although they are private: `http://127.0.0.1:4180`.
 */
export function checkUrl(url: URL, allowed: ReadonlySet<string>): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new PrivateAddress(`${url.protocol} is not fetched`);
  if (url.username || url.password) throw new PrivateAddress('addresses with passwords are not fetched');
  if (allowed.has(url.origin)) return;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) && !isPublic(host)) throw new PrivateAddress(`${host} is on a private network`);
  if (url.port && !['80', '443', '8080', '8443'].includes(url.port)) throw new PrivateAddress(`port ${url.port} is not fetched`);
}
