/** What tests of the site share: a Nestor with rights, the sample web, a fetcher, the site, and a visitor. */
import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import http, { type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { MongoClient } from 'mongodb';
import { connectService, newSecrets, openSite } from '../app.js';
import { databaseName, News, type Secrets } from '../db/connect.js';
import type { Service } from '../db/roles.js';
import { setUp } from '../db/setup.js';
import type { Post, Source } from '../db/types.js';
import { Fetcher, type FetcherOptions } from '../fetch/fetcher.js';
import { limits } from '../fetch/http.js';
import { freePort, Nestor } from '../nestor.js';
import { installSources } from '../sample/install.js';
import { makePeople } from '../sample/people.js';
import { SampleServer } from '../sample/server.js';
import type { Site } from '../site/server.js';

/** The last day of the samples in tests: real time, because pages show what is not in the future. */
export const today = new Date();

/** Where the database's folder goes: into memory if there is room, since tests wait for many commits and for no power cut. */
function roomy(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    accessSync('/dev/shm', constants.W_OK);
    if (bavail * bsize > 2 ** 30) return '/dev/shm';
  } catch {
    // Not on this system.
  }
  return tmpdir();
}

export class World {
  readonly #opened: News[] = [];
  readonly secrets: Secrets = newSecrets();
  samples = new SampleServer({ today });
  nestor!: Nestor;
  folder = '';
  site!: Site;
  base = '';
  /** An editor's connection. */
  news!: News;
  /** Somebody who is not signed in. */
  guest!: Visitor;
  #added = 0;

  /** A world for the tests of a suite, made before the first and gone after the last. */
  static forSuite({ fetched = true, flags = [] }: { fetched?: boolean; flags?: string[] } = {}): World {
    const world = new World();
    before(async () => {
      await world.#open(flags);
      if (fetched) await world.fetchAll();
    });
    after(() => world.close());
    return world;
  }

  /** A world for a program: whoever makes it closes it. */
  static async make(): Promise<World> {
    const world = new World();
    await world.#open([]);
    return world;
  }

  /** Everything but posts: `fetchAll` brings them. `flags` are further flags of the server. */
  async #open(flags: string[]): Promise<void> {
    this.folder = mkdtempSync(join(roomy(), 'news-'));
    this.nestor = new Nestor(process.env.NESTOR_BIN ?? 'nestor', await freePort(), join(this.folder, 'nestor'), flags);
    await this.nestor.start();
    await setUp(this.nestor.uri, this.secrets);
    await makePeople(this.nestor.uri, this.secrets);
    await this.samples.listen();
    this.site = await openSite(this.nestor.uri, this.secrets);
    this.base = `http://127.0.0.1:${await this.site.listen(0)}`;
    this.news = await this.as('editor');
    this.guest = this.visitor();
  }

  async as(service: Service): Promise<News> {
    const news = await connectService(this.nestor.uri, service, this.secrets);
    this.#opened.push(news);
    return news;
  }

  /** Whoever made the database, for what no service may. */
  async root(): Promise<News> {
    const client = await new MongoClient(this.nestor.uri, { auth: { username: 'root', password: this.secrets.root }, authSource: 'admin', writeConcern: { w: 1 } }).connect();
    const news = new News(client, client.db(databaseName));
    this.#opened.push(news);
    return news;
  }

  /** Puts the sample sources on the list and fetches each once. */
  async fetchAll(): Promise<void> {
    await installSources(this.news, this.samples, 60);
    await (await this.fetcher()).round();
    await this.settled();
  }

  async fetcher(options: FetcherOptions = {}): Promise<Fetcher> {
    return new Fetcher(await this.as('fetcher'), { hostPauseMs: 0, limits: { ...limits, allowed: new Set(this.samples.origins) }, ...options });
  }

  /** Makes every source due. */
  async due(filter: object = {}): Promise<void> {
    await this.news.sources.updateMany(filter, { $set: { 'fetch.next': new Date(0) } });
  }

  /** Waits until the follower has come to the end of what there was. */
  async settled(): Promise<void> {
    const follower = await this.as('follower');
    const total = await follower.posts.countDocuments({ state: 'shown' });
    await until(async () => total === 0 || ((await follower.feedstate.findOne({ _id: 'all' }))?.n ?? 0) >= total, 'the follower comes to the end');
  }

  /** A new post of the source `runbook`, as a fetcher inserts it. */
  async addPost(title: string, more: Partial<Post> = {}): Promise<Post> {
    const template = (await this.news.posts.findOne({ source: 'runbook' })) as Post;
    const n = ++this.#added;
    const post: Post = { ...template, _id: `added-${n}`, keys: [`test:${n}`], title, published: new Date(), added: new Date(), state: 'shown', also: [], versions: [], ...more };
    await (await this.as('fetcher')).posts.insertOne(post);
    return post;
  }

  visitor(): Visitor {
    return new Visitor(this.base);
  }

  async signedIn(who: 'reader' | 'editor' | 'owner'): Promise<Visitor> {
    const visitor = this.visitor();
    const answer = await visitor.post('/login', { name: who, password: this.secrets.people[who] });
    if (answer.status !== 303) throw new Error(`${who} could not sign in: ${answer.status}`);
    return visitor;
  }

  async close(): Promise<void> {
    await this.site?.close();
    await this.samples.close();
    for (const news of this.#opened) await news.close();
    await this.nestor?.stop();
    rmSync(this.folder, { recursive: true, force: true });
    rmSync(`${this.folder}.log`, { force: true });
  }
}

export interface Page {
  status: number;
  headers: Headers;
  text: string;
}

/** A browser without scripts: keeps its cookie and follows no redirects. */
export class Visitor {
  cookie = '';

  constructor(readonly base: string) {}

  async get(path: string, headers: Record<string, string> = {}): Promise<Page> {
    return this.#send(path, { headers: { ...headers, ...(this.cookie && { cookie: this.cookie }) } });
  }

  async post(path: string, form: Record<string, string>, headers: Record<string, string> = { origin: this.base }): Promise<Page> {
    return this.#send(path, { method: 'POST', body: new URLSearchParams(form), headers: { ...headers, ...(this.cookie && { cookie: this.cookie }) } });
  }

  async #send(path: string, init: RequestInit): Promise<Page> {
    const answer = await fetch(this.base + path, { ...init, redirect: 'manual' });
    const cookie = answer.headers.get('set-cookie');
    if (cookie) this.cookie = cookie.split(';')[0] ?? '';
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
}

/** Waits until something holds; fails with a sentence after a minute. */
export async function until(holds: () => Promise<boolean> | boolean, what: string, limitMs = 60_000): Promise<void> {
  for (const end = Date.now() + limitMs; ; ) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Answers requests on an origin of its own until `use` has ended. */
export async function serving<T>(answer: RequestListener, use: (origin: string) => Promise<T>): Promise<T> {
  const server = http.createServer((request, response) => {
    response.on('error', () => {});
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** The same for a site without robots.txt. */
export function withoutRobots(answer: RequestListener): RequestListener {
  return (request, response) => (request.url === '/robots.txt' ? void response.writeHead(404).end() : answer(request, response));
}

/** A source for tests, with the fields that matter to them. */
export function sourceAt(id: string, feed: string, more: Partial<Source> = {}): Source {
  return {
    _id: id,
    name: `Source ${id}`,
    home: new URL('/', feed).href,
    feed,
    formerly: [],
    kind: 'practitioner',
    why: 'A source made for a test.',
    authors: ['Somebody'],
    full: true,
    review: false,
    lang: 'en',
    tags: [],
    refreshMinutes: 60,
    state: 'active',
    added: new Date(),
    fetch: { next: new Date(0), lease: new Date(0), failures: 0, history: [] },
    ...more,
  };
}

export type { Post, Source };
