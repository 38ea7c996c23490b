/** One careful HTTP client for feeds, robots.txt and pictures: limits of size, time, redirects and addresses. */
import http from 'node:http';
import https from 'node:https';
import { pipeline } from 'node:stream';
import zlib from 'node:zlib';
import { checkUrl, localLookup, publicLookup } from './address.js';

export const userAgent = 'NestorNews/1.0 (feed reader)';

export interface Limits {
  /** Milliseconds for everything, redirects included. */
  timeMs: number;
  /** Bytes of the body after decompression. */
  bytes: number;
  redirects: number;
  /** Origins that may be fetched although they are private. */
  allowed: ReadonlySet<string>;
}

export const limits: Limits = { timeMs: 20_000, bytes: 8 << 20, redirects: 5, allowed: new Set() };

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
  /** The address that answered. */
  url: string;
  /** The address that the first one moved to for good: as far as 301 and 308 lead. Absent when it did not. */
  movedTo?: string;
}

export class FetchFailed extends Error {}

interface Hop {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** Fetches an address, following redirects. Statuses are answers; everything else that goes wrong throws. */
export async function get(address: string, headers: Record<string, string> = {}, bounds: Limits = limits): Promise<Answer> {
  const end = AbortSignal.timeout(bounds.timeMs);
  let url = new URL(address);
  let forGood = true;
  let movedTo: string | undefined;
  for (let hops = 0; ; hops++) {
    checkUrl(url, bounds.allowed);
    const hop = await once(url, headers, bounds, end);
    const location = hop.headers.location;
    if (![301, 302, 303, 307, 308].includes(hop.status) || !location) return { ...hop, url: url.href, ...(movedTo && { movedTo }) };
    if (hops >= bounds.redirects) throw new FetchFailed(`more than ${bounds.redirects} redirects`);
    if (!URL.canParse(location, url.href)) throw new FetchFailed('a redirect to no address');
    url = new URL(location, url);
    forGood &&= hop.status === 301 || hop.status === 308;
    if (forGood) movedTo = url.href;
  }
}

function once(url: URL, headers: Record<string, string>, bounds: Limits, end: AbortSignal): Promise<Hop> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => {
      request.destroy();
      reject(end.aborted ? new FetchFailed(`no whole answer within ${bounds.timeMs / 1000} s`) : error);
    };
    const request = (url.protocol === 'https:' ? https : http).get(
      url.href,
      {
        headers: { 'user-agent': userAgent, 'accept-encoding': 'gzip, deflate, br', ...headers },
        signal: end,
        lookup: (bounds.allowed.has(url.origin) ? localLookup : publicLookup()) as never,
        maxHeaderSize: 32 << 10,
        agent: false,
      },
      (response) => {
        const { statusCode: status = 0, headers: got } = response;
        const body = decompressed(response, fail);
        const chunks: Buffer[] = [];
        let length = 0;
        body.on('data', (chunk: Buffer) => {
          length += chunk.length;
          // Counted after decompression: a bomb ends here, having cost one chunk more than the limit.
          if (length > bounds.bytes) return fail(new FetchFailed(`more than ${bounds.bytes >> 10} KiB`));
          chunks.push(chunk);
        });
        body.on('error', fail);
        response.on('error', fail);
        response.on('aborted', () => fail(new FetchFailed('the answer broke off')));
        body.on('end', () => resolve({ status, headers: got, body: Buffer.concat(chunks) }));
      },
    );
    request.on('error', fail);
  });
}

function decompressed(response: http.IncomingMessage, fail: (error: Error) => void): NodeJS.ReadableStream {
  const encoding = (response.headers['content-encoding'] ?? '').trim().toLowerCase();
  const through = (stream: NodeJS.ReadWriteStream) => pipeline(response, stream, (error) => error && fail(error)) as NodeJS.ReadWriteStream;
  if (encoding === 'gzip' || encoding === 'x-gzip') return through(zlib.createGunzip());
  if (encoding === 'deflate') return through(zlib.createInflate());
  if (encoding === 'br') return through(zlib.createBrotliDecompress());
  return response;
}

/** When to come back, by `Retry-After`: seconds or a date. At most a week. */
export function retryAfter(value: string | undefined, now: Date): Date | undefined {
  if (!value) return undefined;
  const at = /^\d+$/.test(value.trim()) ? now.getTime() + Number(value) * 1000 : Date.parse(value);
  if (Number.isNaN(at)) return undefined;
  return new Date(Math.min(Math.max(at, now.getTime()), now.getTime() + 7 * 24 * 3600_000));
}
