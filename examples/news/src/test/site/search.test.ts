import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Post, World } from '../world.js';

describe('search', { timeout: 900_000 }, () => {
  const world = World.forSuite();

  const ask = async (query: Record<string, string>) => {
    const { status, text } = await world.guest.get(`/search?${new URLSearchParams(query)}`);
    assert.equal(status, 200);
    return { text, titles: [...text.matchAll(/<article class="post hit"[^>]*><h2[^>]*><a href="\/post\/([^"]+)"/g)].map(([, id]) => decodeURIComponent(id as string)) };
  };

  test('the server has the text index', async () => {
    assert.equal(await world.site.searchable(), true);
    assert.doesNotMatch((await ask({ q: 'index' })).text, /has no text index/);
  });

  test('words in titles count most, other forms of a word are found, hits are marked', async () => {
    const { text, titles } = await ask({ q: 'deadlocks' });
    assert.match(titles[0] ?? '', /deadlock/);
    assert.ok(titles.length > 1);
    assert.match(text, /<mark>[Dd]eadlock<\/mark>/);
  });

  test('phrases, words without which, filters', async () => {
    const [all, phrase, without] = await Promise.all([ask({ q: 'snapshot isolation' }), ask({ q: '"snapshot isolation"' }), ask({ q: '"snapshot isolation" -doctors' })]);
    assert.ok(all.titles.length > phrase.titles.length);
    assert.ok(phrase.titles.length > without.titles.length);
    for (const id of phrase.titles) assert.match((await world.news.posts.findOne({ _id: id }))?.text ?? '', /snapshot isolation/i);
    for (const id of (await ask({ q: 'index', source: 'runbook' })).titles) assert.equal((await world.news.posts.findOne({ _id: id }))?.source, 'runbook');
    const from = new Date(Date.now() - 100 * 86_400_000).toISOString().slice(0, 10);
    for (const id of (await ask({ q: 'index', from })).titles) assert.ok(((await world.news.posts.findOne({ _id: id }))?.published ?? 0) >= new Date(from));
    for (const id of (await ask({ q: 'index', tag: 'sql' })).titles) assert.ok((await world.news.posts.findOne({ _id: id }))?.tags.includes('sql'));
  });

  test('other languages and scripts', async () => {
    assert.match((await ask({ q: 'Löschfrist' })).titles[0] ?? '', /loschfristen/);
    assert.ok((await ask({ q: 'אינדקס' })).titles.length > 0);
  });

  test('hidden and waiting posts are not found', async () => {
    assert.deepEqual((await ask({ q: 'museum' })).titles, []);
  });

  test('what search operators of all kinds do not do: break the page', async () => {
    for (const q of ['"', '-', '""', '-"', '$where', '{"$gt":""}', '<script>', 'a'.repeat(5000), '\u0000', '🎉', '- - -', 'the']) await ask({ q });
  });

  test('saved searches have a feed', async () => {
    const reader = await world.signedIn('reader');
    await reader.post('/mine/search', { name: 'deadlocks', query: 'q=deadlocks' });
    const own = await (await world.as('reader')).readers.findOne({ _id: 'reader' });
    const feed = await world.guest.get(`/mine/${own?.feedToken}/search-${own?.searches[0]?.id}.json`);
    assert.ok(JSON.parse(feed.text).items.length > 1);
  });

  test('related posts are those with the rare words of the title, then those with its tags', async () => {
    const post = (await world.news.posts.findOne({ title: /deadlock/i, state: 'shown' })) as Post;
    const { text } = await world.guest.get(`/post/${encodeURIComponent(post._id)}`);
    const [, list = ''] = /<section class="related">([\s\S]*?)<\/section>/.exec(text) ?? [];
    const ids = [...list.matchAll(/<a href="\/post\/([^"]+)"/g)].map(([, id]) => decodeURIComponent(id as string));
    assert.equal(ids.length, 5);
    assert.ok(!ids.includes(post._id));
    assert.match((await world.news.posts.findOne({ _id: ids[0] as string }))?.text ?? '', /deadlock/i);
    assert.match((await world.guest.get(`/explain?of=${encodeURIComponent(`/post/${post._id}`)}`)).text, /TEXT_MATCH/);
    // A post whose title has no blanks between its words has its tags still.
    const japanese = (await world.news.posts.findOne({ source: 'index-nikki', state: 'shown' })) as Post;
    assert.match((await world.guest.get(`/post/${encodeURIComponent(japanese._id)}`)).text, /Related posts/);
  });

  test('the text index answers, not a scan', async () => {
    const { text } = await world.guest.get(`/explain?of=${encodeURIComponent('/search?q=deadlocks')}`);
    assert.match(text, /TEXT_MATCH/);
  });
});
