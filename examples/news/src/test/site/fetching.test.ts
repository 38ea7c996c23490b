import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect } from '../../db/connect.js';
import { limits } from '../../fetch/http.js';
import type { Item } from '../../fetch/parse.js';
import { ingest } from '../../post/ingest.js';
import { SampleServer } from '../../sample/server.js';
import { serving, sourceAt, today, until, withoutRobots, World } from '../world.js';

describe('fetching', { timeout: 900_000 }, () => {
  const world = World.forSuite();

  test('a year of posts from twelve sources arrives', async () => {
    // The four that one source prints twice are there once.
    assert.equal(await world.news.posts.countDocuments(), 300);
    assert.equal(await world.news.sources.countDocuments({ 'fetch.lastOk': { $exists: true }, 'fetch.failures': 0 }), 12);
    assert.equal(await world.news.posts.countDocuments({ state: 'waiting' }), 18);
  });

  test('a post that a feed prints twice is one, and names both places', async () => {
    const twice = await world.news.posts.find({ source: 'quarry-releases', 'also.0': { $exists: true } }).toArray();
    assert.equal(twice.length, 3);
    for (const post of twice) assert.equal(post.also[0]?.link, `${post.link}-again`);
  });

  test('encodings, also the wrong ones', async () => {
    assert.ok(await world.news.posts.findOne({ source: 'datenbankblatt', title: 'Schlüssel, die wachsen' }));
    assert.ok(await world.news.posts.findOne({ source: 'index-nikki', title: '複合索引の順序' }));
    assert.ok(await world.news.posts.findOne({ source: 'runbook', text: /next year’s primary/ }));
    assert.ok(await world.news.posts.findOne({ source: 'maarachot', title: 'מהו אינדקס?' }));
  });

  test('script in a title is text that is not there', async () => {
    const post = await world.news.posts.findOne({ source: 'runbook', title: /script|alert/ });
    assert.equal(post, null);
  });

  test('absurd dates give way to the moment of fetching', async () => {
    const odd = await world.news.posts.find({ source: 'tarn-engineering', dateFrom: 'seen' }).toArray();
    assert.equal(odd.length, 2);
    for (const { published } of odd) assert.ok(Math.abs(published.getTime() - Date.now()) < 600_000);
  });

  test('a feed that moved for good is asked for there, and the move is kept', async () => {
    const source = await world.news.sources.findOne({ _id: 'measure-twice' });
    assert.match(source?.feed ?? '', /\/feed$/);
    assert.match(source?.formerly[0] ?? '', /\/old-feed$/);
    assert.ok(await world.news.changes.findOne({ who: 'fetcher', what: 'move', 'edits.id': 'measure-twice' }));
  });

  test('a second round: nothing doubled, unchanged feeds say 304, an edit keeps what was said before', async () => {
    await world.due();
    await (await world.fetcher()).round();
    assert.equal(await world.news.posts.countDocuments(), 300);
    const sources = await world.news.sources.find().toArray();
    const status = Object.fromEntries(sources.map(({ _id, fetch }) => [_id, fetch.history[0]?.status]));
    assert.equal(status['papers-slowly'], 304);
    assert.equal(status['query-notebook'], 200);
    assert.equal(status['tarn-engineering'], 503);
    const edited = await world.news.posts.find({ edited: { $exists: true } }).toArray();
    assert.deepEqual(edited.map(({ source }) => source), ['runbook']);
    assert.equal(edited[0]?.versions.length, 1);
    assert.doesNotMatch(edited[0]?.versions[0]?.html ?? '', /Corrected/);
    assert.match(edited[0]?.html ?? '', /Corrected/);
    const page = await world.visitor().get(`/post/${edited[0]?._id}`);
    assert.match(page.text, /What it said before/);
  });

  test('Retry-After and failures put the next attempt off', async () => {
    const source = await world.news.sources.findOne({ _id: 'tarn-engineering' });
    assert.equal(source?.fetch.failures, 1);
    assert.equal(source?.fetch.history[0]?.error, 'status 503');
    // Twice the usual pause after a failure.
    const pause = (source?.fetch.next.getTime() ?? 0) - (source?.fetch.history[0]?.at.getTime() ?? 0);
    assert.equal(pause, 120 * 60_000);
    await world.due({ _id: 'tarn-engineering' });
    await (await world.fetcher()).round();
    assert.equal((await world.news.sources.findOne({ _id: 'tarn-engineering' }))?.fetch.failures, 0);
  });

  test('two fetchers at once share the work and double nothing', async () => {
    await world.due();
    const before = (await world.news.sources.find().toArray()).map(({ fetch }) => fetch.history.length);
    const fetchers = await Promise.all([1, 2, 3].map(() => world.fetcher()));
    await Promise.all(fetchers.map((fetcher) => fetcher.round()));
    const after = (await world.news.sources.find().toArray()).map(({ fetch }) => fetch.history.length);
    assert.deepEqual(after, before.map((n) => n + 1));
    assert.equal(await world.news.posts.countDocuments(), 300);
  });

  test('the same feed under another name, ingested by four at the same moment', async () => {
    const samples = new SampleServer({ today });
    await samples.listen();
    try {
      // The same texts at other addresses, of another source.
      await world.news.sources.insertOne(sourceAt('again', `${samples.origin('papers-slowly')}/feed`));
      const four = await Promise.all([1, 2, 3, 4].map(() => world.fetcher({ limits: { ...limits, allowed: new Set(samples.origins) } })));
      const again = await world.news.sources.findOne({ _id: 'again' });
      assert.ok(again);
      await Promise.all(four.map((fetcher) => fetcher.fetch(again)));
      // Near-same texts of another source are the same posts: none is new, and each knows its second place once.
      assert.equal(await world.news.posts.countDocuments({ source: 'papers-slowly', also: { $size: 1 } }), 40);
      assert.equal(await world.news.posts.countDocuments({ source: 'again' }), 0);
    } finally {
      await world.news.sources.updateOne({ _id: 'again' }, { $set: { state: 'paused' } });
      await samples.close();
    }
  });

  test('the same new posts ingested by four at the same moment are there once', async () => {
    const items = Array.from({ length: 50 }, (_none, i) => `<item><title>Racing ${i}</title><link>http://race.example/${i}</link><guid>${i}</guid><description>Number ${i}</description></item>`).join('');
    const feed = `<rss version="2.0"><channel><title>x</title>${items}</channel></rss>`;
    await serving(withoutRobots((_request, response) => response.end(feed)), async (origin) => {
      const source = sourceAt('race', `${origin}/feed`, { state: 'paused' });
      await world.news.sources.insertOne(source);
      const four = await Promise.all([1, 2, 3, 4].map(() => world.fetcher({ limits: { ...limits, allowed: new Set([origin]) } })));
      await Promise.all(four.map((fetcher) => fetcher.fetch(source)));
    });
    assert.equal(await world.news.posts.countDocuments({ source: 'race' }), 50);
    await world.news.posts.updateMany({ source: 'race' }, { $set: { state: 'hidden' } });
  });

  test('the same new texts from four sources at the same moment are one post with four places', async () => {
    // No key is the same anywhere, so that only the words tell.
    const words = (i: number) => Array.from({ length: 120 }, (_none, at) => `word${(i * 131 + at * at * 17) % 9973}`).join(' ');
    const feedOf = (who: number) => `<rss version="2.0"><channel><title>x</title>${Array.from({ length: 12 }, (_none, i) => `<item><title>Copied ${i}</title><link>http://copy${who}.example/${i}</link><guid isPermaLink="false">${who}-${i}</guid><description>${words(i)} ending${who}</description></item>`).join('')}</channel></rss>`;
    await serving(withoutRobots((request, response) => response.end(feedOf(Number(/\d/.exec(request.url ?? '')?.[0])))), async (origin) => {
      const sources = [1, 2, 3, 4].map((who) => sourceAt(`copy-${who}`, `${origin}/feed${who}`, { state: 'paused' }));
      await world.news.sources.insertMany(sources);
      const four = await Promise.all(sources.map(() => world.fetcher({ limits: { ...limits, allowed: new Set([origin]) } })));
      await Promise.all(four.map((fetcher, i) => fetcher.fetch(sources[i] as (typeof sources)[number])));
    });
    const posts = await world.news.posts.find({ source: /^copy-/ }).toArray();
    assert.deepEqual(posts.map(({ also }) => also.length), Array.from({ length: 12 }, () => 3));
    await world.news.posts.updateMany({ source: /^copy-/ }, { $set: { source: 'race', state: 'hidden' } });
  });

  test('a feed is kept in a few requests, whatever it holds', async () => {
    const many = (of: string) => Array.from({ length: 300 }, (_none, i): Item => ({ title: `${of} ${i}`, link: `http://few.example/${i}`, id: `${i}`, author: '', html: `<p>Of ${i}</p><img src="http://few.example/${i}.png" alt="">`, base: 'http://few.example/', tags: [] }));
    const fetcher = await connect(world.nestor.uri, 'news-fetcher', world.secrets.services.fetcher, { monitorCommands: true });
    const asked: string[] = [];
    fetcher.client.on('commandStarted', ({ commandName }) => asked.push(commandName));
    try {
      const source = sourceAt('few', 'http://few.example/feed', { state: 'paused', review: true });
      const twice = [...many('Few'), { ...(many('Few')[7] as Item), link: 'http://few.example/again' }];
      assert.deepEqual(await ingest(fetcher, source, twice, new Date()), { fresh: 300, edited: 0, doubles: 1 });
      // Three or four times: two questions, a transaction of one question and one insert, and the pictures.
      assert.ok(asked.length <= 26, `${asked.length}: ${asked}`);
      asked.length = 0;
      assert.deepEqual(await ingest(fetcher, source, many('Few'), new Date()), { fresh: 0, edited: 0, doubles: 0 });
      assert.deepEqual(new Set(asked), new Set(['find']));
      assert.ok(asked.length <= 10, `${asked.length}`);
      assert.deepEqual(await ingest(fetcher, source, many('Fewer'), new Date()), { fresh: 0, edited: 300, doubles: 0 });
      assert.equal(await world.news.posts.countDocuments({ source: 'few' }), 300);
      assert.equal((await world.news.posts.findOne({ keys: 'link:few.example/7' }))?.also[0]?.link, 'http://few.example/again');
    } finally {
      await fetcher.close();
      await world.news.posts.updateMany({ source: 'few' }, { $set: { source: 'race', state: 'hidden' } });
      await (await world.as('fetcher')).pictures.updateMany({ url: /few\.example/ }, { $set: { state: 'failed' } });
    }
  });

  test('an hour of fetching in fast time: the clock is ours', async () => {
    await world.news.sources.updateMany({ state: 'active' }, { $set: { refreshMinutes: 5, 'fetch.failures': 0 } });
    const begin = Date.now();
    let minutes = 0;
    const fetcher = await world.fetcher({ now: () => new Date(begin + minutes * 60_000) });
    await world.due({ state: 'active' });
    const posts = await world.news.posts.countDocuments();
    let fetched = 0;
    for (; minutes < 60; minutes++) while (await fetcher.step()) fetched++;
    // Twelve sources and the copy, every five minutes.
    const active = await world.news.sources.countDocuments({ state: 'active' });
    assert.ok(fetched >= active * 11 && fetched <= active * 13, `${fetched} fetches of ${active} sources`);
    assert.equal(await world.news.posts.countDocuments(), posts);
    for (const { fetch } of await world.news.sources.find({ state: 'active' }).toArray()) assert.ok(fetch.history.length >= 11 && fetch.history.length <= 30);
    await world.news.sources.updateMany({ state: 'active' }, { $set: { refreshMinutes: 60, 'fetch.next': new Date(), 'fetch.lease': new Date(0) } });
  });

  test('a host is asked again after a pause, whichever source asks', async () => {
    const asked: number[] = [];
    let begun = 0;
    const answer = withoutRobots((_request, response) => {
      asked.push(performance.now());
      response.end('<rss version="2.0"><channel><title>x</title></channel></rss>');
    });
    await serving(answer, async (origin) => {
      await world.news.sources.insertMany([1, 2, 3].map((n) => sourceAt(`polite-${n}`, `${origin}/feed/${n}`)));
      const fetcher = await world.fetcher({ hostPauseMs: 200, limits: { ...limits, allowed: new Set([origin, ...world.samples.origins]) } });
      begun = performance.now();
      await fetcher.round();
      await world.news.sources.updateMany({ _id: /^polite/ }, { $set: { state: 'paused' } });
    });
    assert.equal(asked.length, 3);
    // From the beginning, not from one request to the next: a request may be on its way for long, but none leaves early.
    for (const [i, at] of asked.entries()) assert.ok(at - begun >= i * 200 - 10, `${asked.map((at) => at - begun)}`);
  });

  test('robots.txt is heard, and its copy kept', async () => {
    await world.news.sources.insertOne(sourceAt('private', `${world.samples.origin('runbook')}/private/feed`));
    await (await world.fetcher()).round();
    const source = await world.news.sources.findOne({ _id: 'private' });
    assert.equal(source?.fetch.history[0]?.error, 'robots.txt does not allow it');
    const fetcher = await world.as('fetcher');
    assert.match((await fetcher.robots.findOne({ _id: world.samples.origin('runbook') }))?.text ?? '', /Disallow/);
  });

  test('a source that is gone for good is paused, one that is away is tried again', async () => {
    await serving((_request, response) => response.writeHead(410).end(), async (origin) => {
      await world.news.sources.insertMany([sourceAt('gone', `${origin}/feed`), sourceAt('away', 'http://127.0.0.1:9/feed')]);
      await (await world.fetcher({ limits: { ...limits, allowed: new Set([origin, 'http://127.0.0.1:9']) } })).round();
    });
    assert.equal((await world.news.sources.findOne({ _id: 'gone' }))?.state, 'paused');
    assert.ok(await world.news.changes.findOne({ what: 'pause', 'edits.id': 'gone' }));
    const away = await world.news.sources.findOne({ _id: 'away' });
    assert.equal(away?.state, 'active');
    assert.equal(away?.fetch.failures, 1);
    await world.news.sources.updateMany({ _id: { $in: ['gone', 'away', 'private'] } }, { $set: { state: 'paused' } });
  });

  test('pictures are shown from here', async () => {
    await until(async () => (await world.news.pictures.countDocuments({ state: 'wanted' })) === 0 || ((await (await world.fetcher()).round()), false), 'pictures are fetched');
    const picture = await world.news.pictures.findOne({ state: 'here' });
    assert.equal(picture?.type, 'image/png');
    const answer = await fetch(`${world.base}/picture/${picture?._id}`);
    assert.equal(answer.headers.get('content-type'), 'image/png');
    assert.deepEqual([...new Uint8Array(await answer.arrayBuffer()).subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  });

  test('the database restarts in the middle: nothing lost, nothing doubled', async () => {
    await (await world.as('editor')).posts.countDocuments();
    await world.due({ state: 'active' });
    const fetcher = await world.fetcher();
    const running = fetcher.run(50);
    await world.nestor.stop('SIGKILL');
    await world.nestor.start();
    await world.due({ state: 'active' });
    // Leases of the round that was cut off end by themselves; here we do not wait for two minutes.
    await (await world.as('editor')).sources.updateMany({}, { $set: { 'fetch.lease': new Date(0) } });
    await until(async () => (await world.news.sources.countDocuments({ state: 'active', 'fetch.next': { $lte: new Date() } }).catch(() => 1)) === 0, 'all is fetched');
    fetcher.stop();
    await running;
    assert.equal(await world.news.posts.countDocuments({ source: { $ne: 'race' } }), 300);
    assert.equal((await world.visitor().get('/')).status, 200);
  });
});
