/**
 * The web of the samples: one local server on which all twelve sources live, each under a name of its own below
 * `localhost`. It answers as good and bad servers do: conditional requests, compression, a feed that moved, one that is
 * asked for too often.
 */
import { createHash } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { deflateSync, gzipSync } from 'node:zlib';
import { crc32 } from './crc.js';
import { writers, type Written } from './formats.js';
import { chance, library, type SamplePost, type SampleSource } from './library.js';
import { toHtml } from './markup.js';
import { escape } from '../site/html.js';

export interface SampleOptions {
  /** The last day of the year of posts. */
  today: Date;
  /** The newest posts of the library come one by one: so many, so many milliseconds apart. */
  later?: { posts: number; everyMs: number };
}

export class SampleServer {
  readonly sources: SampleSource[];
  readonly #server: http.Server;
  readonly #asked = new Map<string, number>();
  readonly #begun = Date.now();
  /** The posts that are still to come, the next first. */
  readonly #coming: { source: string; post: SamplePost; at: number }[] = [];
  port = 0;

  constructor(options: SampleOptions) {
    this.sources = library(options.today);
    const { posts = 0, everyMs = 0 } = options.later ?? {};
    // The last post of each of the first sources, one after the other.
    for (const [i, source] of this.sources.slice(0, posts).entries()) {
      const post = source.posts.at(-1);
      if (post) this.#coming.push({ source: source.id, post, at: this.#begun + (i + 1) * everyMs });
    }
    this.#server = http.createServer((request, response) => this.#answer(request, response));
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', resolve);
    });
    this.port = (this.#server.address() as { port: number }).port;
    this.#seeAlso();
  }

  /** Where a source lives. */
  origin(id: string): string {
    return `http://${id}.localhost:${this.port}`;
  }

  /** All origins, for the fetcher to allow. */
  get origins(): string[] {
    return this.sources.map(({ id }) => this.origin(id));
  }

  /** Authors read each other: some posts end with a link to an earlier post of somebody else on the same subject. */
  #seeAlso(): void {
    for (const source of this.sources.filter(({ lang, format }) => lang === 'en' && format !== 'json-1.0')) {
      for (const post of source.posts) {
        if (chance(`see ${post.id}`) > 0.3) continue;
        const others = this.sources.filter((other) => other !== source && other.lang === 'en').flatMap((other) => other.posts.filter((one) => one.published < post.published && one.tags.some((tag) => post.tags.includes(tag))).map((one) => ({ other, one })));
        const pick = others[Math.floor(chance(`pick ${post.id}`) * others.length)];
        if (pick) post.text += `\n\nSee also [${pick.one.title}](${this.origin(pick.other.id)}/${pick.one.id}) at ${pick.other.name}.`;
      }
    }
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = new URL(request.url ?? '/', 'http://x').pathname;
    if (path === '/robots.txt') return void response.writeHead(200, { 'content-type': 'text/plain' }).end('User-agent: *\nDisallow: /private/\n');
    const id = (request.headers.host ?? '').split('.')[0] ?? '';
    const what = path.slice(1);
    const source = this.sources.find((one) => one.id === id);
    if (!source) return void response.writeHead(404).end('not here');
    if (what === 'feed') return this.#feed(source, request, response);
    if (what === 'old-feed') return void response.writeHead(301, { location: '/feed' }).end();
    if (what.endsWith('.png')) return void response.writeHead(200, { 'content-type': 'image/png' }).end(picture(what));
    const post = source.posts.find((one) => one.id === what);
    const html = post ? `<h1>${escape(post.title)}</h1>${toHtml(post.text)}` : `<h1>${escape(source.name)}</h1><ul>${source.posts.map((one) => `<li><a href="/${one.id}">${escape(one.title)}</a></li>`).join('')}</ul>`;
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(`<!doctype html><meta charset="utf-8"><title>${escape(source.name)}</title>${html}`);
  }

  #feed(source: SampleSource, request: IncomingMessage, response: ServerResponse): void {
    const asked = (this.#asked.get(source.id) ?? 0) + 1;
    this.#asked.set(source.id, asked);
    // A source that is asked for the second time is tired, once.
    if (source.id === 'tarn-engineering' && asked === 2) return void response.writeHead(503, { 'retry-after': '3' }).end('later');
    const now = Date.now();
    const absent = new Set(this.#coming.filter(({ at }) => at > now).map(({ post }) => post.id));
    const posts = source.posts
      .filter(({ id }) => !absent.has(id))
      // What came while we watched is dated so.
      .map((post) => this.#coming.find((one) => one.post.id === post.id) ?? post)
      .map((one): SamplePost => ('at' in one ? { ...one.post, published: new Date(one.at) } : one));
    // One author corrects a post after its first readers wrote.
    const edited = source.id === 'runbook' && asked > 1 ? posts.map((post, i) => (i === posts.length - 1 ? { ...post, text: `${post.text}\n\nCorrected: an earlier version had the two settings the wrong way round.` } : post)) : posts;
    const writer = writers[source.format] ?? writers['rss-content'];
    const { type, body } = (writer as NonNullable<typeof writer>)(source, edited, { home: this.origin(source.id), asked }) as Written;
    const etag = `"${createHash('sha256').update(body).digest('hex').slice(0, 16)}"`;
    const changed = (posts.at(-1)?.published ?? new Date(0)).toUTCString();
    if (request.headers['if-none-match'] === etag) return void response.writeHead(304, { etag }).end();
    const zipped = gzipSync(body);
    response.writeHead(200, { 'content-type': type, etag, 'last-modified': changed, 'content-encoding': 'gzip', 'content-length': zipped.length }).end(zipped);
  }

  /** The documents of the sources, as editors would have written them. */
  documents(): { id: string; feed: string; home: string; sample: SampleSource }[] {
    return this.sources.map((sample) => ({
      id: sample.id,
      // One feed moved since it was put on the list.
      feed: `${this.origin(sample.id)}/${sample.id === 'measure-twice' ? 'old-feed' : 'feed'}`,
      home: `${this.origin(sample.id)}/`,
      sample,
    }));
  }
}

/** Pictures of posts, drawn here: grey bars whose heights the name tells. */
function picture(name: string): Buffer {
  const [width, height] = name.startsWith('pixel') ? [1, 1] : [480, 200];
  const heights = Array.from({ length: 12 }, (_none, i) => 20 + (createHash('md5').update(name + i).digest()[0] as number) * 0.65);
  const rows: Buffer[] = [];
  for (let y = 0; y < height; y++) {
    const row = Buffer.alloc(1 + width, 0xf2);
    row[0] = 0;
    for (let x = 0; x < width; x++) if (x % 40 > 6 && height - y < (heights[Math.floor(x / 40)] ?? 0)) row[1 + x] = 0x74;
    rows.push(row);
  }
  const chunk = (type: string, content: Buffer) => {
    const typed = Buffer.concat([Buffer.from(type), content]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(content.length);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(typed));
    return Buffer.concat([length, typed, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head[8] = 8;
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.concat(rows))), chunk('IEND', Buffer.alloc(0))]);
}
