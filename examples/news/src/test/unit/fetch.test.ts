import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkUrl, isPublic, PrivateAddress, publicLookup } from '../../fetch/address.js';
import { decode } from '../../fetch/charset.js';
import { dateOf, read } from '../../fetch/dates.js';
import { retryAfter } from '../../fetch/http.js';
import { maxItems, parse } from '../../fetch/parse.js';
import { pictureType } from '../../fetch/pictures.js';
import { excerptOf, makeSafe, plain, quoteOf } from '../../fetch/sanitize.js';
import { writers } from '../../sample/formats.js';
import { library } from '../../sample/library.js';

test('only public addresses are public', () => {
  for (const address of ['127.0.0.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0', '224.0.0.1', '255.255.255.255', '::1', '::', 'fe80::1', 'fc00::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '2002:7f00:1::', '2001:db8::1', '64:ff9b::7f00:1', 'nonsense'])
    assert.equal(isPublic(address), false, address);
  for (const address of ['8.8.8.8', '172.32.0.1', '193.99.144.80', '2606:4700::1111', '2a02:2e0::1', '::ffff:8.8.8.8']) assert.equal(isPublic(address), true, address);
});

test('addresses that are refused before a connection is made', () => {
  for (const url of ['file:///etc/passwd', 'ftp://example.org/', 'http://user:secret@example.org/', 'http://127.0.0.1/', 'http://[::1]/', 'http://[::ffff:7f00:1]/', 'http://2130706433/', 'http://0x7f.1/', 'http://example.org:6379/'])
    assert.throws(() => checkUrl(new URL(url), new Set()), PrivateAddress, url);
  checkUrl(new URL('https://example.org/feed'), new Set());
  checkUrl(new URL('http://127.0.0.1:4180/feed'), new Set(['http://127.0.0.1:4180']));
  assert.throws(() => checkUrl(new URL('http://127.0.0.1:4181/'), new Set(['http://127.0.0.1:4180'])), PrivateAddress);
});

test('a name that resolves to a private address is refused, also if a public one stands beside it', async () => {
  const answer = (addresses: { address: string; family: number }[]) => ((_host: string, _options: unknown, callback: (error: null, list: unknown) => void) => callback(null, addresses)) as never;
  const ask = (addresses: { address: string; family: number }[]) => new Promise((resolve) => publicLookup(answer(addresses))('evil.example', {}, (error, address) => resolve(error ?? address)));
  assert.ok((await ask([{ address: '10.0.0.1', family: 4 }])) instanceof PrivateAddress);
  assert.ok((await ask([{ address: '93.184.216.34', family: 4 }, { address: '127.0.0.1', family: 4 }])) instanceof PrivateAddress);
  assert.equal(await ask([{ address: '93.184.216.34', family: 4 }]), '93.184.216.34');
});

test('bytes become text by mark, header, declaration and sniffing', () => {
  assert.equal(decode(Buffer.from('\ufeffgrün')), 'grün');
  assert.equal(decode(Buffer.from('gr\xfcn', 'latin1')), 'grün');
  assert.equal(decode(Buffer.from('it\x92s', 'latin1')), 'it’s');
  assert.equal(decode(Buffer.from('gr\xfcn', 'latin1'), 'text/xml; charset=iso-8859-1'), 'grün');
  assert.equal(decode(Buffer.from('<?xml version="1.0" encoding="iso-8859-1"?>gr\xfcn \x96', 'latin1')), '<?xml version="1.0" encoding="iso-8859-1"?>grün –');
  // Declared, and not true.
  assert.equal(decode(Buffer.from('<?xml version="1.0" encoding="utf-8"?>gr\xfcn', 'latin1')), '<?xml version="1.0" encoding="utf-8"?>grün');
  assert.equal(decode(Buffer.from('<a>索</a>', 'utf16le')), '<a>索</a>');
  assert.equal(decode(Buffer.from([0x8d, 0xf5, 0x88, 0xf8]), 'text/xml; charset=Shift_JIS'), '索引');
  assert.equal(decode(Buffer.from('plain'), 'text/xml; charset=no-such-thing'), 'plain');
  assert.equal(decode(Buffer.alloc(0)), '');
});

test('dates in the forms that feeds have', () => {
  const at = Date.UTC(2026, 2, 4, 5, 6, 7);
  for (const text of ['Wed, 04 Mar 2026 05:06:07 GMT', '04 Mar 2026 05:06:07 +0000', '2026-03-04T05:06:07Z', '2026-03-04T06:06:07+01:00', '2026-03-04 05:06:07', 'Mi, 04 Mär 2026 06:06:07 CET', 'Mittwoch, 4 März 2026 06:06:07 +0100', 'Wed, 04 Mar 2026 00:06:07 EST']) assert.equal(read(text), at, text);
  for (const text of ['', 'yesterday', 'post 7', '32 Foo 2026', undefined]) assert.equal(read(text), undefined, String(text));
});

test('the rule of dates', () => {
  const seen = new Date('2026-05-01T12:00:00Z');
  assert.deepEqual(dateOf({ published: '2026-04-30T10:00:00Z' }, seen), { published: new Date('2026-04-30T10:00:00Z'), dateFrom: 'published' });
  assert.deepEqual(dateOf({ updated: '2026-04-30T10:00:00Z' }, seen), { published: new Date('2026-04-30T10:00:00Z'), dateFrom: 'updated' });
  assert.deepEqual(dateOf({ published: 'Thu, 01 Jan 1970 00:00:00 GMT' }, seen), { published: seen, dateFrom: 'seen' });
  assert.deepEqual(dateOf({ published: '2099-12-31T00:00:00Z', updated: '2026-04-01T00:00:00Z' }, seen), { published: new Date('2026-04-01T00:00:00Z'), dateFrom: 'updated' });
  assert.deepEqual(dateOf({ published: '2026-05-01T20:00:00Z' }, seen), { published: seen, dateFrom: 'published' });
  assert.deepEqual(dateOf({}, seen), { published: seen, dateFrom: 'seen' });
});

test('Retry-After is seconds or a date, and no more than a week', () => {
  const now = new Date('2026-05-01T12:00:00Z');
  assert.deepEqual(retryAfter('120', now), new Date('2026-05-01T12:02:00Z'));
  assert.deepEqual(retryAfter('Fri, 01 May 2026 13:00:00 GMT', now), new Date('2026-05-01T13:00:00Z'));
  assert.deepEqual(retryAfter('99999999999', now), new Date('2026-05-08T12:00:00Z'));
  assert.equal(retryAfter('soon', now), undefined);
  assert.equal(retryAfter(undefined, now), undefined);
});

test('every sample is read whole in its format', () => {
  for (const source of library(new Date('2026-11-22T12:00:00Z'))) {
    const { type, body } = (writers[source.format] as NonNullable<(typeof writers)[string]>)(source, source.posts, { home: `http://${source.id}.example`, asked: 1 });
    const items = parse(decode(body, type), `http://${source.id}.example/feed`);
    const twice = source.format === 'atom-twice' ? Math.floor((source.posts.length + 4) / 10) : 0;
    assert.equal(items.length, source.posts.length + twice, source.id);
    for (const item of items) {
      assert.ok(item.title, source.id);
      assert.ok(item.link?.startsWith(`http://${source.id}.example/`), `${source.id}: ${item.link}`);
      assert.ok(plain(item.html).length > 20, `${source.id}: ${item.html}`);
    }
    assert.equal(plain(items.at(0)?.title ?? ''), source.posts[0]?.title);
  }
});

test('there are 300 posts from 12 sources', () => {
  const sources = library(new Date('2026-11-22T12:00:00Z'));
  assert.equal(sources.length, 12);
  assert.equal(sources.reduce((sum, { posts }) => sum + posts.length, 0), 300);
  const days = sources.flatMap(({ posts }) => posts.map(({ published }) => published.getTime()));
  assert.ok(Math.max(...days) - Math.min(...days) > 350 * 86_400_000);
});

test('what is no feed is refused, and entities of its own making are not expanded', () => {
  for (const text of ['', '{}', '<html><body>no</body></html>', 'not at all', '<rss', '{"version":"https://jsonfeed.org/version/1"']) assert.throws(() => parse(text, 'http://x.example/feed'));
  const laughs = `<!DOCTYPE lolz [<!ENTITY lol "lol">${Array.from({ length: 9 }, (_none, i) => `<!ENTITY lol${i + 1} "${`&lol${i || ''};`.repeat(10)}">`).join('')}]><rss version="2.0"><channel><title>x</title><item><title>&lol9;</title></item></channel></rss>`;
  let said = '';
  try {
    said = JSON.stringify(parse(laughs, 'http://x.example/feed'));
  } catch {
    // To refuse it is as good.
  }
  assert.ok(said.length < 10_000);
  const outside = '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss version="2.0"><channel><title>x</title><item><title>&x;</title></item></channel></rss>';
  assert.doesNotMatch(JSON.stringify(parseOr(outside)), /root:/);
});

function parseOr(text: string): unknown {
  try {
    return parse(text, 'http://x.example/feed');
  } catch (error) {
    return String(error);
  }
}

test('of ten thousand items the first thousand are read', () => {
  const feed = `<rss version="2.0"><channel><title>x</title>${Array.from({ length: 10_000 }, (_none, i) => `<item><title>t${i}</title><guid>${i}</guid></item>`).join('')}</channel></rss>`;
  const items = parse(feed, 'http://x.example/feed');
  assert.equal(items.length, maxItems);
  assert.equal(items[0]?.title, 't0');
});

test('HTML of strangers is made safe', () => {
  const base = 'http://a.example/posts/1';
  const dirty = [
    '<p onclick="alert(1)" style="position:fixed">a</p>',
    '<script>alert(1)</script><style>body{display:none}</style>',
    '<img src=x onerror=alert(1)>',
    '<a href="javascript:alert(1)">b</a><a href=" java\tscript:alert(1)">c</a><a href="data:text/html,x">d</a>',
    '<iframe src="http://evil.example"></iframe><object data="x"></object><embed src="x"><form action="/logout" method="post"><button>e</button></form>',
    '<svg><script>alert(1)</script></svg><math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
    '<base href="http://evil.example/"><meta http-equiv="refresh" content="0;url=http://evil.example"><link rel="stylesheet" href="x">',
    '<input name="password"><textarea>f</textarea><select><option>g</select>',
    '<div id="main" class="masthead" data-live="/">h</div>',
    '<p>unclosed <b>bold <i>both',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
  ].join('\n');
  const { html } = makeSafe(dirty, base);
  assert.doesNotMatch(html, /<(script|style|iframe|object|embed|form|svg|math|base|meta|link|input|textarea|select|button)/i);
  // What is left of these words is text, never an attribute.
  assert.doesNotMatch(html, /<[^>]*\son\w+=/i);
  assert.doesNotMatch(html, /(href|src)="(javascript|data|vbscript):/i);
  assert.doesNotMatch(html, /<[^>]*\s(style|id|class|data-\w+)=/i);
});

test('links become whole, pictures come from here, pixels that count readers go', () => {
  const { html, links, pictures } = makeSafe('<a href="../other">x</a> <a href="//cdn.example/y">y</a> <img src="i.png" alt="I"> <img src="t.gif" width="1" height="1"> <a href="mailto:a@b.example">m</a>', 'http://a.example/posts/1');
  assert.match(html, /href="http:\/\/a\.example\/other"/);
  assert.match(html, /href="http:\/\/cdn\.example\/y"/);
  assert.match(html, /<img src="\/picture\/[0-9a-f]{32}" alt="I" loading="lazy" \/>/);
  assert.doesNotMatch(html, /t\.gif|i\.png/);
  assert.deepEqual(pictures.map(({ url }) => url), ['http://a.example/posts/i.png']);
  assert.deepEqual(links, ['a.example', 'cdn.example']);
});

test('what has to stay stays: code in columns, tables, lists, directions', () => {
  const kept = '<pre><code>a   b\n  c &lt;d&gt;</code></pre><table><thead><tr><th>x</th></tr></thead><tbody><tr><td colspan="2">y</td></tr></tbody></table><ul><li>z</li></ul><p dir="rtl" lang="he">שלום</p>';
  assert.equal(makeSafe(kept, 'http://a.example/').html, kept.replace('<pre>', '<pre tabindex="0">'));
});

test('deep nesting ends', () => {
  const { html } = makeSafe('<div><b>'.repeat(50_000), 'http://a.example/');
  assert.ok(html.length < 100_000);
});

test('excerpts end in […] when something is left out', () => {
  assert.equal(excerptOf('one two three', 5), 'one two three');
  assert.equal(excerptOf('one two three four', 3), 'one two three […]');
  assert.match(excerptOf('索'.repeat(1000)), /^索+ \[…\]$/);
});

test('what may not be shown in full is never shown in full', () => {
  assert.equal(quoteOf('one two three four five six'), 'one two three […]');
  assert.match(quoteOf('索'.repeat(30)), /^索{20} \[…\]$/);
  assert.equal(quoteOf('x '.repeat(500).trim()), excerptOf('x '.repeat(500).trim()));
  assert.equal(quoteOf(''), '');
  for (const { posts } of library(new Date('2026-11-22'))) for (const { text } of posts) assert.match(quoteOf(plain(text)), / \[…\]$/);
});

test('pictures are told by their bytes, and SVG is none', () => {
  assert.equal(pictureType(Buffer.from('\x89PNG\r\n\x1a\n....', 'latin1')), 'image/png');
  assert.equal(pictureType(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), undefined);
  assert.equal(pictureType(Buffer.from('<html>')), undefined);
});
