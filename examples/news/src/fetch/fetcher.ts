/**
 * The fetcher. Any number may run: a source that is due is taken by one `findOneAndUpdate`, which gives a lease; what
 * a fetcher leaves undone when it dies is due again when the lease ends.
 */
import { Int32, ObjectId } from 'mongodb';
import type { News } from '../db/connect.js';
import type { Attempt, Edit, Source } from '../db/types.js';
import { delay } from '../delay.js';
import { ingest } from '../post/ingest.js';
import { decode } from './charset.js';
import { type Answer, get, type Limits, limits as standard, retryAfter } from './http.js';
import { Measurements } from './measure.js';
import { parse } from './parse.js';
import { fetchPictures } from './pictures.js';
import { mayFetch } from './robots.js';

const leaseMs = 2 * 60_000;
const longestPauseMs = 24 * 3600_000;
/** Requests to one host are at least this far apart. */
const hostPauseMs = 1000;

class Failed extends Error {
  constructor(message: string, readonly status = 0, readonly notBefore?: Date) {
    super(message);
  }
}

export interface FetcherOptions {
  limits?: Limits;
  hostPauseMs?: number;
  now?: () => Date;
}

export class Fetcher {
  readonly name = new ObjectId().toHexString();
  readonly #measurements: Measurements;
  readonly #limits: Limits;
  readonly #now: () => Date;
  readonly #hostPauseMs: number;
  /** When each host may be asked again. */
  readonly #hosts = new Map<string, number>();
  #stopped = false;

  constructor(
    readonly news: News,
    options: FetcherOptions = {},
  ) {
    this.#measurements = new Measurements(news);
    this.#limits = options.limits ?? standard;
    this.#now = options.now ?? (() => new Date());
    this.#hostPauseMs = options.hostPauseMs ?? hostPauseMs;
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Fetches what is due until `stop`. */
  async run(pauseMs = 500): Promise<void> {
    while (!this.#stopped) {
      try {
        if (await this.step()) continue;
        await fetchPictures(this.news, this.#limits);
      } catch (error) {
        // The database is away: leases end by themselves, and nothing that was read is lost.
        console.error(`fetcher: ${(error as Error).message}`);
        await delay(1000);
      }
      await delay(pauseMs);
    }
  }

  /** Fetches everything that is due now. */
  async round(): Promise<void> {
    while (await this.step());
    await fetchPictures(this.news, this.#limits);
  }

  /** Takes one source that is due and fetches it; false when none is. */
  async step(): Promise<boolean> {
    const now = this.#now();
    const source = await this.news.sources.findOneAndUpdate(
      { state: 'active', 'fetch.next': { $lte: now }, 'fetch.lease': { $lte: now } },
      { $set: { 'fetch.lease': new Date(now.getTime() + leaseMs), 'fetch.holder': this.name } },
      { sort: { 'fetch.next': 1 }, returnDocument: 'after' },
    );
    if (!source) return false;
    await this.fetch(source);
    return true;
  }

  async fetch(source: Source): Promise<void> {
    const at = this.#now();
    const begun = performance.now();
    const attempt: Attempt = { at, status: 0, ms: 0, bytes: 0, fresh: 0 };
    let notBefore: Date | undefined;
    const headers: Record<string, unknown> = {};
    try {
      const answer = await this.#ask(source);
      attempt.status = answer.status;
      attempt.bytes = answer.body.length;
      if (answer.movedTo && answer.status < 400) await this.#moved(source, answer.movedTo);
      if (answer.status === 200) {
        const items = parse(decode(answer.body, answer.headers['content-type']), answer.url);
        attempt.fresh = (await ingest(this.news, source, items, at)).fresh;
        headers['fetch.etag'] = answer.headers.etag;
        headers['fetch.lastModified'] = answer.headers['last-modified'];
      }
    } catch (error) {
      attempt.error = (error as Error).message.slice(0, 300);
      if (error instanceof Failed) {
        attempt.status = error.status;
        notBefore = error.notBefore;
      }
      if (attempt.status === 410) await this.#gone(source);
    }
    attempt.ms = Math.round(performance.now() - begun);
    await this.#finish(source, attempt, headers, notBefore);
  }

  async #ask(source: Source): Promise<Answer> {
    const { feed, fetch } = source;
    if (!(await mayFetch(this.news, feed, this.#limits))) throw new Failed('robots.txt does not allow it');
    await this.#wait(new URL(feed).host);
    const answer = await get(
      feed,
      {
        accept: 'application/atom+xml, application/feed+json, application/rss+xml, application/xml;q=0.9, */*;q=0.5',
        ...(fetch.etag && { 'if-none-match': fetch.etag }),
        ...(fetch.lastModified && { 'if-modified-since': fetch.lastModified }),
      },
      this.#limits,
    );
    if (answer.status !== 200 && answer.status !== 304) {
      throw new Failed(`status ${answer.status}`, answer.status, retryAfter(answer.headers['retry-after'], this.#now()));
    }
    return answer;
  }

  /** Waits until the host may be asked again. */
  async #wait(host: string): Promise<void> {
    const now = Date.now();
    const turn = Math.max(now, this.#hosts.get(host) ?? 0);
    this.#hosts.set(host, turn + this.#hostPauseMs);
    if (turn > now) await delay(turn - now);
  }

  async #finish(source: Source, attempt: Attempt, headers: Record<string, unknown>, notBefore?: Date): Promise<void> {
    const failures = attempt.error ? source.fetch.failures + 1 : 0;
    const pause = Math.min(source.refreshMinutes * 60_000 * 2 ** Math.min(failures, 20), longestPauseMs);
    const next = new Date(Math.max(attempt.at.getTime() + pause, notBefore?.getTime() ?? 0));
    await this.news.sources.updateOne(
      // Whoever lost the lease meanwhile does not overwrite what its new holder knows.
      { _id: source._id, 'fetch.holder': this.name },
      {
        $set: { 'fetch.next': next, 'fetch.lease': new Date(0), 'fetch.failures': new Int32(failures) as never, ...(!attempt.error && { 'fetch.lastOk': attempt.at }), ...headers },
        $push: { 'fetch.history': { $each: [attempt], $position: 0, $slice: 30 } },
      },
    );
    await this.#measurements.add({ at: attempt.at, source: source._id, ms: attempt.ms, status: attempt.status, failed: attempt.error !== undefined });
  }

  /** The feed moved for good: the address and the record of it change together. */
  async #moved(source: Source, feed: string): Promise<void> {
    if (feed === source.feed) return;
    if (await this.news.sources.findOne({ feed, _id: { $ne: source._id } })) throw new Failed(`moved to ${feed}, which is another source's feed`);
    await this.#changeSource(source, 'move', `the feed moved to ${feed}`, { feed, formerly: [...source.formerly, source.feed].slice(-10) });
    source.feed = feed;
  }

  /** 410: the feed is gone for good, and says so. */
  async #gone(source: Source): Promise<void> {
    await this.#changeSource(source, 'pause', 'the feed is gone (410)', { state: 'paused' });
  }

  async #changeSource(source: Source, what: string, note: string, after: Partial<Source>): Promise<void> {
    const before = Object.fromEntries(Object.keys(after).map((name) => [name, source[name as keyof Source]]));
    const edits: Edit[] = [{ collection: 'sources', id: source._id, before, after }];
    await this.news.client.withSession((session) =>
      session.withTransaction(async () => {
        await this.news.sources.updateOne({ _id: source._id }, { $set: after }, { session });
        await this.news.changes.insertOne({ _id: new ObjectId(), at: this.#now(), who: 'fetcher', what, note, edits }, { session });
      }),
    );
  }
}
