import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, test } from 'node:test';
import { parseFeed } from 'feedsmith';
import type { Post } from '../../db/types.js';
import { dayOf, weekOf } from '../../site/dates.js';
import { until, World } from '../world.js';

describe('pages', { timeout: 900_000 }, () => {
  const world = World.forSuite();

  test('the front page: days newest first, below 60 kB, told what it cost', async () => {
    const { status, text, headers } = await world.guest.get('/');
    assert.equal(status, 200);
    const days = [...text.matchAll(/id="d-(\d{4}-\d\d-\d\d)"/g)].map(([, day]) => day as string);
    assert.ok(days.length > 3);
    assert.deepEqual(days, [...days].sort().reverse());
    assert.ok(text.length < 60_000);
    assert.match(text, /\d+ quer\w+, [\d.]+ ms, \d+ keys and \d+ documents examined/);
    assert.equal(headers.get('content-security-policy'), "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'");
    assert.doesNotMatch(text, /<script(?! src="\/)|\sstyle="|\son\w+="/);
  });

  test('it is answered by an index: no more documents than it shows', async () => {
    const { text } = await world.guest.get('/explain?of=/');
    assert.match(text, /IXSCAN shown/);
    assert.doesNotMatch(text, /COLLSCAN/);
    assert.doesNotMatch(text, /<p>[^<]*SORT/);
    // Thirty to show at most, and one that tells whether there are older ones. No condition on the date is needed for it.
    const [, keys, documents] = /<p>(\d+) keys and (\d+) documents examined, \d+ returned/.exec(text) ?? [];
    assert.ok(Number(keys) <= 31 && Number(documents) <= 31, `${keys} keys, ${documents} documents`);
    assert.doesNotMatch(text, /\$lt/);
  });

  test('older pages follow each other to the end and show every post once, also of a feed that gives days without hours', async () => {
    const root = await world.root();
    const template = (await world.news.posts.findOne({ source: 'runbook' })) as Post;
    const at = new Date(Date.now() - 20 * 86_400_000);
    await root.posts.insertMany(Array.from({ length: 70 }, (_none, i) => ({ ...template, _id: `one-time-${i}`, keys: [`one-time:${i}`], published: at, also: [] })));
    const seen: string[] = [];
    let path: string | undefined = '/';
    for (let pages = 0; path && pages < 100; pages++) {
      const { text } = await world.guest.get(path);
      seen.push(...[...text.matchAll(/<article id="p-([^"]+)"/g)].map(([, id]) => id as string));
      path = /<a rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
    }
    assert.equal(new Set(seen).size, seen.length);
    assert.equal(seen.length, await world.news.posts.countDocuments({ state: 'shown' }));
    await root.posts.deleteMany({ _id: /^one-time-/ });
  });

  test('days, weeks, sources, tags, posts, digests, figures', async () => {
    const post = (await world.news.posts.findOne({ source: 'papers-slowly' })) as Post;
    for (const path of [`/day/${dayOf(post.published)}`, `/week/${weekOf(post.published)}`, `/digest/${weekOf(post.published)}`, '/source/papers-slowly', `/tag/${post.tags[0]}`, '/archive', '/sources', '/tags', '/digest', '/stats', '/about', '/login', '/join']) {
      const { status, text } = await world.guest.get(path);
      assert.equal(status, 200, path);
      assert.match(text, /<h1/, path);
    }
    assert.match((await world.guest.get(`/day/${dayOf(post.published)}`)).text, new RegExp(`/post/${post._id}`));
    assert.match((await world.guest.get(`/post/${post._id}`)).text, /Related posts/);
    assert.match((await world.guest.get(`/digest/${weekOf(post.published)}.txt`)).text, new RegExp(`${weekOf(post.published)}|DATABASE NEWS`));
    assert.equal((await world.guest.get('/no-such-page')).status, 404);
    assert.equal((await world.guest.get('/post/no-such-post')).status, 404);
    assert.equal((await world.guest.post('/archive', {})).status, 405);
  });

  test('the figures are those of the posts', async () => {
    const { text } = await world.guest.get('/stats');
    assert.equal([...text.matchAll(/<svg class="chart"/g)].length >= 3, true);
    const inChart = [...text.matchAll(/<title>[^<]*: (\d+)<\/title>/g)].reduce((sum, [, n]) => sum + Number(n), 0);
    const now = new Date();
    const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11, 1));
    assert.equal(inChart, await world.news.posts.countDocuments({ state: 'shown', published: { $gte: from } }));
    assert.match(text, /Who links to whom[\s\S]*Papers, Slowly/);
  });

  test('the figures are the same in SQL', async () => {
    const charts = (text: string) => [...text.matchAll(/<title>([^<]*)<\/title>/g)].map(([, said]) => said).concat([...text.matchAll(/Who links to whom[\s\S]*?<\/section>/g)].map(([said]) => said));
    const [pipelines, sql] = await Promise.all(['/stats', '/stats?in=sql'].map(async (path) => (await world.guest.get(path)).text));
    assert.ok(charts(pipelines ?? '').length > 20);
    assert.deepEqual(charts(sql ?? ''), charts(pipelines ?? ''));
    assert.match(sql ?? '', /percentile_disc/);
    assert.match((await world.guest.get('/explain?of=%2Fstats%3Fin%3Dsql')).text, /queryPlan/);
  });

  test('latencies and failures of fetching are a time series, and charted', async () => {
    const [fetches] = await (await world.root()).db.listCollections({ name: 'fetches' }).toArray();
    assert.equal(fetches?.type, 'timeseries');
    const [before] = await world.as('public').then((open) => open.fetches.aggregate([{ $group: { _id: null, n: { $sum: 1 }, failed: { $sum: { $cond: ['$failed', 1, 0] } } } }]).toArray());
    assert.deepEqual([before?.n, before?.failed], [12, 0]);
    // The second time one source answers 503.
    await world.due();
    await (await world.fetcher()).round();
    const [, section = ''] = /<section id="fetching">([\s\S]*?)<\/section>/.exec((await world.guest.get('/stats')).text) ?? [];
    assert.match(section, /24 fetches in seven days, 1 failed/);
    assert.equal([...section.matchAll(/<svg /g)].length, 2);
    assert.match(section, /<rect class="fail"[^>]*><title>[^<]*failed: 1<\/title>/);
    assert.match(section, /Tarn Engineering[\s\S]*1 of 2 failed/);
    const open = await world.as('public');
    assert.equal((await open.fetches.findOne({ failed: true }))?.source, 'tarn-engineering');
    await assert.rejects(open.fetches.insertOne({ at: new Date(), source: 'x', ms: 1, status: 0, failed: false }), { code: 13 });
    // What is asked of a time is asked of buckets, not of all measurements.
    assert.match((await world.guest.get('/explain?of=/stats')).text, /unpack|TS_|bucket/i);
  });

  test('a source that may not be quoted in full is an excerpt everywhere', async () => {
    const post = (await world.news.posts.findOne({ source: 'tarn-engineering', title: /We moved 40,000/ })) as Post;
    assert.match(post.excerpt, /\[…\]$/);
    const hidden = 'load balancer that preferred';
    assert.ok(post.text.includes(hidden));
    for (const path of [`/post/${post._id}`, '/source/tarn-engineering', '/source/tarn-engineering/feed.atom', '/source/tarn-engineering/feed.json', `/day/${dayOf(post.published)}`]) assert.ok(!(await world.guest.get(path)).text.includes(hidden), path);
  });

  test('code keeps its columns, tables their cells', async () => {
    const post = (await world.news.posts.findOne({ title: 'Granularity of locks in a shared data base' })) as Post;
    assert.ok((await world.guest.get(`/post/${post._id}`)).text.includes('mode   IS   IX   S    SIX  X\nIS     yes  yes  yes  yes  no'));
    const table = (await world.news.posts.findOne({ title: 'fsync per second, by drive' })) as Post;
    assert.match((await world.guest.get(`/post/${table._id}`)).text, /<td>consumer NVMe<\/td><td>420<\/td>/);
  });

  test('feeds out are feeds', async () => {
    const atom = parseFeed((await world.guest.get('/feed.atom')).text);
    assert.equal(atom.format, 'atom');
    assert.equal((atom.feed as { entries: unknown[] }).entries.length, 40);
    const json = JSON.parse((await world.guest.get('/feed.json')).text);
    assert.equal(json.version, 'https://jsonfeed.org/version/1.1');
    assert.equal(json.items.length, 40);
    for (const path of ['/source/runbook/feed.atom', '/tag/papers/feed.json', '/digest.atom']) assert.ok(parseFeed((await world.guest.get(path)).text), path);
    assert.equal((await world.guest.get('/source/none/feed.atom')).status, 404);
  });

  test('conditional GET: 304 until something of that feed changes', async () => {
    const first = await world.guest.get('/source/runbook/feed.atom');
    const etag = first.headers.get('etag') ?? '';
    const modified = first.headers.get('last-modified') ?? '';
    assert.equal((await world.guest.get('/source/runbook/feed.atom', { 'if-none-match': etag })).status, 304);
    assert.equal((await world.guest.get('/source/runbook/feed.atom', { 'if-none-match': `W/${etag}, "x"` })).status, 304);
    assert.equal((await world.guest.get('/source/runbook/feed.atom', { 'if-modified-since': modified })).status, 304);
    assert.equal((await world.guest.get('/source/runbook/feed.json', { 'if-none-match': etag })).status, 200);
    const other = (await world.guest.get('/source/papers-slowly/feed.atom')).headers.get('etag') ?? '';
    await world.news.posts.updateOne({ source: 'runbook' }, { $set: { author: 'Another' } });
    await until(async () => (await world.guest.get('/source/runbook/feed.atom', { 'if-none-match': etag })).status === 200, 'the feed changes');
    assert.equal((await world.guest.get('/source/papers-slowly/feed.atom', { 'if-none-match': other })).status, 304);
  });

  test('words of titles are suggested', async () => {
    const found = JSON.parse((await world.guest.get('/suggest?q=write%20ind')).text) as string[];
    assert.ok(found.some((words) => words.startsWith('write ind')), `${found}`);
  });

  test('a new post comes to open pages, and a page that was away gets what it missed', async () => {
    const events = await listen(world.base, {});
    const post = await world.addPost('A new post for live pages');
    const begun = Date.now();
    await until(() => events.text.includes(post._id), 'the event comes');
    assert.ok(Date.now() - begun < 3000);
    const id = /id: (\S+)/.exec(events.text)?.[1] ?? '';
    events.close();
    const second = await world.addPost('A second post for live pages');
    const back = await listen(world.base, { 'last-event-id': id });
    await until(() => back.text.includes(second._id), 'what was missed comes');
    assert.doesNotMatch(back.text, new RegExp(post._id));
    back.close();
    assert.ok((await world.guest.get('/')).text.includes(second._id));
  });

  test('hidden posts do not come, accepted ones do', async () => {
    const events = await listen(world.base, {});
    const waiting = (await world.news.posts.findOne({ state: 'waiting' })) as Post;
    const seen = await world.addPost('Seen at once');
    await until(() => events.text.includes(seen._id), 'a shown post comes');
    assert.ok(!events.text.includes(waiting._id));
    const editor = await world.signedIn('editor');
    await editor.post(`/desk/post/${waiting._id}`, { do: 'accept' });
    await until(() => events.text.includes(waiting._id), 'the accepted post comes');
    events.close();
  });

  test('the follower goes on after a restart of the database and of the site, and counts each word once', async () => {
    const word = 'zymurgy';
    await world.addPost(`About ${word}`);
    const follower = await world.as('follower');
    await until(async () => (await follower.suggestions.findOne({ _id: word }))?.n === 1, 'the word is counted');
    await world.nestor.stop('SIGKILL');
    await world.nestor.start();
    await world.addPost(`More about ${word}`);
    await until(async () => (await follower.suggestions.findOne({ _id: word }).catch(() => null))?.n === 2, 'the word is counted after the restart');
    // While the follower is away.
    await world.site.follower.stop();
    await world.addPost(`Even more about ${word}`);
    const { Follower } = await import('../../live/follower.js');
    const again = new Follower(follower);
    await again.start();
    await until(async () => (await follower.suggestions.findOne({ _id: word }))?.n === 3, 'what came meanwhile is counted');
    await again.stop();
  });
});

interface Events {
  text: string;
  close(): void;
}

/** Opens a live page and collects what it is told. */
function listen(base: string, headers: Record<string, string>): Promise<Events> {
  return new Promise((resolve, reject) => {
    const request = http.get(`${base}/live`, { headers }, (response) => {
      const events: Events = { text: '', close: () => request.destroy() };
      response.on('data', (chunk: Buffer) => {
        const first = !events.text;
        events.text += chunk.toString('utf8');
        if (first) resolve(events);
      });
      response.on('error', () => {});
    });
    request.on('error', reject);
  });
}
