/** The path of a request: limits, session, route, page, frame, headers. */
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { MongoServerError } from 'mongodb';
import { Refused } from '../db/changes.js';
import { connectService, type News, type Secrets } from '../db/connect.js';
import type { Role } from '../db/types.js';
import { type Follower } from '../live/follower.js';
import type { Live } from '../live/live.js';
import { Context, HttpError, type Page, type Reply, type User } from './context.js';
import { html } from './html.js';
import { frame, statics } from './layout.js';
import { routes } from './routes.js';
import { searchIsThere } from './search.js';
import { Sessions } from './sessions.js';

export type Pools = Record<Role | 'public' | 'door' | 'follower', News>;

/** No exceptions: no inline scripts, no inline styles, nothing from anywhere else. */
export const securityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const headers = {
  'content-security-policy': securityPolicy,
  'x-content-type-options': 'nosniff',
  // Not `no-referrer`: with it browsers send forms with `Origin: null`.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

const maxForm = 64 << 10;

export class Site {
  readonly sessions: Sessions;
  readonly server: http.Server;
  #searchable = false;

  private constructor(
    readonly uri: string,
    readonly pools: Pools,
    readonly live: Live,
    readonly follower: Follower,
  ) {
    this.sessions = new Sessions(uri, pools.door);
    this.server = http.createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, (request, response) => void this.#serve(request, response));
  }

  static async open(uri: string, secrets: Secrets, makeFollower: (pools: Pools) => Promise<[Live, Follower]>): Promise<Site> {
    const names = ['public', 'reader', 'editor', 'owner', 'door', 'follower'] as const;
    const opened = await Promise.all(names.map((name) => connectService(uri, name, secrets)));
    const pools = Object.fromEntries(names.map((name, i) => [name, opened[i]])) as unknown as Pools;
    const [live, follower] = await makeFollower(pools);
    return new Site(uri, pools, live, follower);
  }

  /** Whether the server has the text index. Asked again as long as it has not. */
  async searchable(): Promise<boolean> {
    this.#searchable ||= await searchIsThere(this.pools.public);
    return this.#searchable;
  }

  listen(port: number, host = '127.0.0.1'): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, host, () => resolve((this.server.address() as { port: number }).port));
    });
  }

  async close(): Promise<void> {
    this.live.close();
    await this.follower.stop();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    await Promise.all(Object.values(this.pools).map((news) => news.close()));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    let context: Context | undefined;
    let reply: Reply;
    try {
      const url = new URL(request.url ?? '/', 'http://site');
      const file = statics[url.pathname];
      if (file) return sendStatic(request, response, file, url.search.length > 1);
      const form = request.method === 'POST' ? await this.#form(request) : new URLSearchParams();
      context = new Context(this, request, url, await this.sessions.userOf(request), form);
      reply = await this.#route(context, response);
    } catch (error) {
      reply = failure(error);
    }
    try {
      await this.#send(context, request, response, reply);
    } catch (error) {
      console.error(error);
      response.destroy();
    }
  }

  async #form(request: IncomingMessage): Promise<URLSearchParams> {
    sameOrigin(request);
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxForm) throw new HttpError(413, 'That is more than a form of this site sends.');
      chunks.push(chunk);
    }
    return new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
  }

  async #route(context: Context, response: ServerResponse): Promise<Reply> {
    const method = context.request.method === 'HEAD' ? 'GET' : context.request.method;
    let known = false;
    for (const route of routes) {
      const match = route.path.exec(context.url.pathname);
      if (!match) continue;
      known = true;
      if (route.method !== method) continue;
      if (route.role && !context.may(route.role)) {
        if (context.user) throw new HttpError(403, `This is for those who are ${route.role} or more.`);
        return { kind: 'redirect', to: `/login?next=${encodeURIComponent(context.url.pathname + context.url.search)}` };
      }
      return route.run(context, match.slice(1).map(decode), response);
    }
    throw known ? new HttpError(405, 'This address does not take such requests.') : new HttpError(404, 'There is nothing at this address.');
  }

  /** Runs the page at an address again for `/explain`, which wants its queries. */
  async rehearse(of: Context, path: string): Promise<Context> {
    const url = URL.canParse(path, 'http://site') ? new URL(path, 'http://site') : undefined;
    if (!url || url.host !== 'site') throw new HttpError(400, 'That is no page of this site.');
    const route = routes.find(({ method, explains, path }) => method === 'GET' && explains && path.test(url.pathname));
    if (!route) throw new HttpError(400, 'That page has no queries to explain.');
    const context = new Context(this, of.request, url, of.user, new URLSearchParams());
    await route.run(context, (route.path.exec(url.pathname) as RegExpExecArray).slice(1).map(decode), undefined as never);
    return context;
  }

  async #send(context: Context | undefined, request: IncomingMessage, response: ServerResponse, reply: Reply): Promise<void> {
    if (reply.kind === 'taken') return;
    if (reply.kind === 'redirect') {
      response.writeHead(303, { location: reply.to, ...reply.headers }).end();
      return;
    }
    if (reply.kind === 'raw') {
      response.writeHead(reply.status ?? 200, { 'content-type': reply.type, ...reply.headers });
      response.end(request.method === 'HEAD' ? undefined : reply.body);
      return;
    }
    const shown = context ?? new Context(this, request, new URL('http://site/'), undefined, new URLSearchParams());
    // The footer is worth a page, not the other way round.
    const figures = shown.reads.commands.length && !reply.status ? await shown.reads.figures().catch(() => undefined) : undefined;
    const text = frame(shown, reply, figures).text;
    response.writeHead(reply.status ?? 200, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': shown.user ? 'private, no-store' : 'no-cache',
      'server-timing': `page;dur=${(performance.now() - shown.begun).toFixed(1)}, db;dur=${shown.reads.waited.toFixed(1)}`,
    });
    response.end(request.method === 'HEAD' ? undefined : text);
  }
}

function decode(part: string | undefined): string {
  try {
    return decodeURIComponent(part ?? '');
  } catch {
    throw new HttpError(400, 'The address is not well-formed.');
  }
}

/** A form has to come from a page of this site (cross-site request forgery). */
function sameOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers;
  const site = request.headers['sec-fetch-site'];
  const good = origin ? URL.canParse(origin) && new URL(origin).host === host : site === 'same-origin';
  if (!good) throw new HttpError(403, 'Forms are taken from pages of this site only.');
}

function sendStatic(request: IncomingMessage, response: ServerResponse, file: (typeof statics)[string], forever: boolean): void {
  const etag = `"${file?.etag}"`;
  response.setHeader('etag', etag);
  response.setHeader('cache-control', forever ? 'public, max-age=31536000, immutable' : 'public, max-age=300');
  if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
  else response.writeHead(200, { 'content-type': file?.type ?? '' }).end(request.method === 'HEAD' ? undefined : file?.body);
}

function failure(error: unknown): Page {
  if (error instanceof HttpError) return sorry(error.status, error.message);
  if (error instanceof Refused) return sorry(409, `Not done: ${error.message}.`);
  if (error instanceof MongoServerError && error.code === 13) return sorry(403, 'The database does not allow this to your role.');
  if (error instanceof MongoServerError && error.code === 121) return sorry(400, 'Not kept: a field has a value that the collection does not take.');
  if (error instanceof MongoServerError && error.code === 11000) return sorry(409, 'Not kept: there is one like it already.');
  console.error(error);
  return sorry(503, 'The database does not answer at the moment. Please try again.');
}

function sorry(status: number, message: string): Page {
  return { kind: 'page', status, title: `${status}`, unlisted: true, main: html`<h1>${status}</h1><p>${message}</p><p><a href="/">To the latest posts</a></p>` };
}

export type { User };
