import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { describe, test } from 'node:test';
import { createGzip, gzipSync } from 'node:zlib';
import { parseFeed } from 'feedsmith';
import type { Source } from '../../db/types.js';
import { limits } from '../../fetch/http.js';
import { serving, sourceAt, withoutRobots, World } from '../world.js';

const rss = (items: string) => `<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>x</title><link>http://x.example/</link>${items}</channel></rss>`;
const evil = '"><script>window.evil=1</script><img src=x onerror="window.evil=1">';
const escaped = evil.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

describe('hostile feeds', { timeout: 900_000 }, () => {
  const world = World.forSuite({ fetched: false });
  let n = 0;

  /** Serves one feed, fetches it, and returns what became of the source. */
  async function serve(answer: RequestListener, more: Partial<Source> = {}, bounds = {}): Promise<Source> {
    const id = `hostile-${++n}`;
    return serving(withoutRobots(answer), async (origin) => {
      await world.news.sources.insertOne(sourceAt(id, `${origin}/feed`, more));
      await (await world.fetcher({ limits: { ...limits, timeMs: 3000, allowed: new Set([origin]), ...bounds } })).round();
      const source = await world.news.sources.findOne({ _id: id });
      assert.ok(source);
      // Nothing of it is fetched again by the tests that follow.
      await world.news.sources.updateOne({ _id: id }, { $set: { state: 'paused' } });
      return source;
    });
  }

  const failed = (source: Source) => source.fetch.history[0]?.error ?? '';

  test('script in every field', async () => {
    const item = `<item><title>${escaped}</title><link>http://x.example/1?${escaped}</link><guid>${escaped}</guid><dc:creator>${escaped}</dc:creator><category>${escaped}</category><description>${escaped} and words</description></item><item><title>Two</title><link>javascript:alert(1)</link><description>second</description></item>`;
    await serve((_request, response) => response.end(rss(item)), { name: `n ${evil}`, authors: [evil], why: `A reason ${evil}`, tags: [evil] });
    const posts = await world.news.posts.find({ source: `hostile-${n}` }).toArray();
    assert.equal(posts.length, 2);
    const paths = ['/', '/sources', `/source/hostile-${n}`, '/tags', '/stats', '/digest', ...posts.map(({ _id }) => `/post/${encodeURIComponent(_id)}`), `/search?q=${encodeURIComponent(evil)}`, `/login?next=${encodeURIComponent(evil)}`, `/explain?of=${encodeURIComponent('/')}`];
    const editor = await world.signedIn('editor');
    for (const path of [...paths, '/desk', `/desk/source/hostile-${n}`, ...posts.map(({ _id }) => `/desk/post/${encodeURIComponent(_id)}`)]) {
      const page = await editor.get(path);
      assert.ok(page.status < 500, `${path}: ${page.status}`);
      assert.doesNotMatch(page.text, /<script>window|onerror="window|<img src=x/i, path);
      assert.doesNotMatch(page.text, /href="javascript:/i, path);
      assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'; script-src 'self'; style-src 'self'/);
    }
    // In Atom names and titles are text, whatever it says; what is HTML is safe.
    const { feed } = parseFeed((await editor.get(`/source/hostile-${n}/feed.atom`)).text) as { feed: { entries: { content: { value: string } }[] } };
    assert.equal(feed.entries.length, 2);
    for (const { content } of feed.entries) assert.doesNotMatch(content.value, /<script|<[^>]*onerror/i);
  });

  test('a billion laughs', async () => {
    const entities = Array.from({ length: 9 }, (_none, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join('');
    const source = await serve((_request, response) => response.end(`<!DOCTYPE x [<!ENTITY l0 "lol">${entities}]>${rss('<item><title>&l9;</title><link>http://x.example/laughs</link></item>')}`));
    const post = await world.news.posts.findOne({ source: source._id });
    assert.ok(failed(source) || (post?.title.length ?? 0) < 100);
  });

  test('an answer that never ends, and one that comes a byte at a time', async () => {
    let timer: NodeJS.Timeout | undefined;
    const begun = Date.now();
    const slow = await serve((_request, response) => {
      response.write('<rss>');
      timer = setInterval(() => response.write(' '), 50);
      response.on('close', () => clearInterval(timer));
    }, {}, { timeMs: 1000 });
    assert.match(failed(slow), /no whole answer within 1 s/);
    assert.ok(Date.now() - begun < 30_000);
    const mute = await serve(() => {}, {}, { timeMs: 1000 });
    assert.match(failed(mute), /no whole answer/);
  });

  test('a hundred megabytes, declared or not', async () => {
    const chunk = Buffer.alloc(1 << 20, 'x');
    let sent = 0;
    const source = await serve((_request, response) => {
      const more = () => {
        while (sent < 100) {
          sent++;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
        response.end();
      };
      more();
    });
    assert.match(failed(source), /more than 8192 KiB/);
    assert.ok(sent < 100, `${sent} MB were taken`);
  });

  test('a gzip bomb', async () => {
    const source = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      const zip = createGzip();
      zip.pipe(response);
      const zeros = Buffer.alloc(1 << 20);
      let left = 300;
      const more = () => {
        while (left-- > 0) if (!zip.write(zeros)) return void zip.once('drain', more);
        zip.end();
      };
      more();
    });
    assert.match(failed(source), /more than 8192 KiB/);
    const broken = await serve((_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x').subarray(0, 12)));
    assert.ok(failed(broken));
  });

  test('ten thousand posts in one feed', async () => {
    const items = Array.from({ length: 10_000 }, (_none, i) => `<item><title>Number ${i}</title><link>http://x.example/many/${i}</link><description>Text ${i}</description></item>`).join('');
    const source = await serve((_request, response) => response.end(rss(items)), {}, { timeMs: 20_000 });
    assert.equal(failed(source), '');
    assert.equal(await world.news.posts.countDocuments({ source: source._id }), 1000);
    const page = await world.visitor().get('/');
    assert.ok(page.text.length < 60_000, `${page.text.length}`);
  });

  test('a post of megabytes is kept short', async () => {
    const source = await serve((_request, response) => response.end(rss(`<item><title>${'T'.repeat(5000)}</title><link>http://x.example/long</link><guid>${'g'.repeat(10_000)}</guid><description>${'&lt;p&gt;many words &lt;/p&gt;'.repeat(200_000)}</description></item>`)));
    assert.equal(failed(source), '');
    const post = await world.news.posts.findOne({ source: source._id });
    assert.ok(post && post.title.length === 500 && post.html.length <= 500_000);
    assert.ok((await world.visitor().get('/')).text.length < 60_000);
  });

  test('identifiers and links that are new each time', async () => {
    let asked = 0;
    const words = 'a text with enough words to be told from others by what it says and not by where it claims to stand, since neither its address nor its identifier is ever the same, which happens more often than one would think';
    const answer: RequestListener = (_request, response) => {
      asked++;
      response.end(rss(`<item><title>Ever new</title><link>http://x.example/${asked}/p</link><guid isPermaLink="false">${asked}</guid><description>${words}</description></item><item><title>Short</title><link>http://x.example/s/${asked}</link><description>short ${n}</description></item>`));
    };
    await serving(withoutRobots(answer), async (origin) => {
      await world.news.sources.insertOne(sourceAt('ever-new', `${origin}/feed`));
      const fetcher = await world.fetcher({ limits: { ...limits, allowed: new Set([origin]) } });
      for (let round = 0; round < 60; round++) {
        await world.due({ _id: 'ever-new' });
        await fetcher.round();
      }
      await world.news.sources.updateOne({ _id: 'ever-new' }, { $set: { state: 'paused' } });
    });
    assert.equal(asked, 60);
    assert.equal(await world.news.posts.countDocuments({ source: 'ever-new' }), 2);
    const [post] = await world.news.posts.find({ title: 'Ever new' }).toArray();
    assert.ok((post?.keys.length ?? 99) <= 50);
  });

  test('redirects to private addresses, in circles, and to other schemes', async () => {
    let secret = 0;
    const answer: RequestListener = (_request, response) => {
      secret++;
      response.end(rss('<item><title>secret</title></item>'));
    };
    await serving(answer, async (inside) => {
      for (const [to, why] of [
        [`${inside}/`, /private network/],
        [`http://localhost:${new URL(inside).port}/`, /private network|port/],
        ['http://169.254.169.254/latest/meta-data/', /private network/],
        ['http://[::1]/', /private network/],
        ['file:///etc/passwd', /not fetched/],
        ['/feed', /redirects/],
      ] as const) {
        const source = await serve((_request, response) => response.writeHead(302, { location: to }).end());
        assert.match(failed(source), why, to);
      }
    });
    assert.equal(secret, 0);
  });

  test('right to left, emoji, and directions that do not end', async () => {
    const source = await serve((_request, response) => response.end(rss('<item><title>\u202Eמילים 🎉 words</title><link>http://x.example/rtl</link><description>&lt;p&gt;\u202E\u2067שלום עולם 👩‍👩‍👧‍👦&lt;/p&gt;</description></item>')));
    const post = await world.news.posts.findOne({ source: source._id });
    assert.match(post?.title ?? '', /🎉/);
    assert.match((await world.visitor().get(`/post/${encodeURIComponent(post?._id ?? '')}`)).text, /<h1 dir="auto">/);
  });

  test('two sources whose every post has the same link', async () => {
    const source = await serve((_request, response) => response.end(rss(['One', 'Two', 'Three'].map((title) => `<item><title>${title} of the home page</title><link>http://x.example/home</link><description>about ${title}</description></item>`).join(''))));
    assert.equal(await world.news.posts.countDocuments({ source: source._id }), 3);
  });

  test('no feed at all', async () => {
    assert.ok(failed(await serve((_request, response) => response.end('<html><body>Not found</body></html>'))));
    assert.ok(failed(await serve((_request, response) => response.end())));
    assert.ok(failed(await serve((request) => request.socket.destroy())));
  });

  test('requests that no browser sends', async () => {
    const visitor = world.visitor();
    for (const path of ['/post/%ff', '/tag/%E0%A4%A', '/day/2026-13-45', '/week/2026-W99', '/post/' + 'x'.repeat(5000), '/?before=never', '/picture/../../etc/passwd', '/search?q=%22', '/explain?of=http://127.0.0.1/', '/explain?of=/login', '/suggest?q=%00', '/source/%7B%22$ne%22:1%7D', '/mine/aaaaaaaaaaaaaaaaaaaaaaaa/followed.atom'])
      assert.ok((await visitor.get(path)).status < 500, path);
    assert.equal((await visitor.post('/login', { name: 'reader', password: 'x'.repeat(100_000) })).status, 413);
  });
});
