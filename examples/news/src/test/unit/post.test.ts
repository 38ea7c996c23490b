import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Item } from '../../fetch/parse.js';
import { suggested } from '../../live/derived.js';
import { bandsOf, near, resemblance } from '../../post/fingerprint.js';
import { keysOf, normalLink, slugOf } from '../../post/identity.js';
import { tagsOf } from '../../post/ingest.js';
import { library } from '../../sample/library.js';
import { toHtml } from '../../sample/markup.js';
import { startOfDay, startOfWeek, weekOf } from '../../site/dates.js';
import { html, trusted } from '../../site/html.js';
import { highlight, questionOf, snippet, stemsOf } from '../../site/search.js';

const item = (more: Partial<Item>): Item => ({ title: 'A title', author: '', html: '', base: 'http://a.example/', tags: [], ...more });

test('links are the same whatever campaign they belong to', () => {
  for (const link of ['https://www.a.example/p/1?utm_source=x&utm_campaign=y#top', 'http://a.example/p/1/', 'http://a.example/p/1?ref=z']) assert.equal(normalLink(link), 'a.example/p/1');
  assert.notEqual(normalLink('http://a.example/p?id=1'), normalLink('http://a.example/p?id=2'));
  assert.equal(normalLink('http://a.example/p?b=2&a=1'), normalLink('http://a.example/p?a=1&b=2'));
});

test('a key that posts of other titles share tells nothing', () => {
  const keys = keysOf('s', [item({ title: 'One', link: 'http://a.example/', id: '1' }), item({ title: 'Two', link: 'http://a.example/', id: '2' })]);
  assert.deepEqual(keys, [['id:s:1'], ['id:s:2']]);
  assert.deepEqual(keysOf('s', [item({ link: 'http://a.example/1', id: '1' })]), [['link:a.example/1', 'id:s:1']]);
  const without = keysOf('s', [item({ title: 'One' }), item({ title: 'Two' })]);
  assert.match(without[0]?.[0] ?? '', /^text:s:/);
  assert.notDeepEqual(without[0], without[1]);
});

test('slugs keep letters of all scripts and differ by key', () => {
  assert.match(slugOf('What a Page Holds, really?', 'k'), /^what-a-page-holds-really-[0-9a-f]{8}$/);
  assert.match(slugOf('מהו אינדקס?', 'k'), /^מהו-אינדקס-[0-9a-f]{8}$/);
  assert.match(slugOf('!!!', 'k'), /^[0-9a-f]{8}$/);
  assert.notEqual(slugOf('A', '1'), slugOf('A', '2'));
});

test('near-same texts have a band in common, others hardly ever', () => {
  const texts = library(new Date('2026-11-22')).flatMap(({ posts }) => posts.map(({ text }) => text)).filter((text) => text.split(/\s+/).length >= 40);
  let found = 0;
  for (const text of texts) {
    const words = text.split(' ');
    // Three words of the first thirty are others, and a line was added.
    const other = `${words.map((word, i) => (i === 20 ? 'different' : word)).join(' ')} Updated.`;
    if (resemblance(text, other) < near) continue;
    found += bandsOf(other).some((band) => bandsOf(text).includes(band)) ? 1 : -1000;
  }
  assert.ok(found > 100, `${found} of ${texts.length}`);
  let false_ = 0;
  for (let i = 1; i < texts.length; i++) if (resemblance(texts[i] as string, texts[i - 1] as string) >= 0.3) false_++;
  assert.equal(false_, 0);
});

test('tags have one spelling', () => {
  assert.deepEqual(tagsOf(['B-Trees', 'b trees', ' SQL ', '<b>C++</b>', '', '索引']), ['b-trees', 'sql', 'c++', '索引']);
});

test('words for suggestions', () => {
  assert.deepEqual(suggested('The Index that nobody used, and the index that 2024 had'), ['index', 'nobody', 'used']);
});

test('templates escape', () => {
  assert.equal(html`<a title="${'"><script>'}">${'<b>&'}</a>${trusted('<i>x</i>')}${[html`<u>${1}</u>`, false, undefined]}`.text, '<a title="&quot;&gt;&lt;script&gt;">&lt;b&gt;&amp;</a><i>x</i><u>1</u>');
});

test('the samples’ markup', () => {
  assert.equal(toHtml('a *b* `c<d`\n\n    x\n\n    y\n\n- one\n- two\n\n| h |\n| 1 |'), '<p>a <em>b</em> <code>c&lt;d</code></p>\n<pre><code>x\n\ny</code></pre>\n<ul><li>one</li><li>two</li></ul>\n<table><thead><tr><th>h</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>');
});

test('weeks are those of ISO 8601', () => {
  assert.equal(weekOf(new Date('2027-01-01T00:00:00Z')), '2026-W53');
  assert.equal(weekOf(new Date('2026-01-01T00:00:00Z')), '2026-W01');
  assert.equal(startOfWeek('2026-W01')?.toISOString(), '2025-12-29T00:00:00.000Z');
  assert.equal(startOfWeek('2025-W53'), undefined);
  assert.equal(startOfDay('2026-02-30'), undefined);
  assert.equal(startOfDay('2026-02-28')?.toISOString(), '2026-02-28T00:00:00.000Z');
});

test('hits are marked and everything else escaped', () => {
  const stems = stemsOf('indexes "write ahead" -lsm');
  assert.equal(highlight('An <index> writes; LSM', stems).text, 'An &lt;<mark>index</mark>&gt; <mark>writes</mark>; LSM');
  const long = `${'word '.repeat(200)}an index here ${'word '.repeat(200)}`;
  assert.match(snippet(long, stems).text, /^<p>\[…\] .*<mark>index<\/mark>.* \[…\]<\/p>$/);
});

test('questions of a search address', () => {
  assert.equal(questionOf(new URLSearchParams('q=')), undefined);
  assert.deepEqual(questionOf(new URLSearchParams('q=tree&source=s&to=2026-05-01'))?.to, new Date('2026-05-02T00:00:00Z'));
});
