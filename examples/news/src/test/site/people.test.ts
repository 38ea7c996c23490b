import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { MongoServerError } from 'mongodb';
import { type Visitor, World } from '../world.js';

describe('readers and editors', { timeout: 900_000 }, () => {
  const world = World.forSuite();
  let reader: Visitor;
  let editor: Visitor;
  before(async () => {
    reader = await world.signedIn('reader');
    editor = await world.signedIn('editor');
  });

  const somePost = async (source: string) => (await world.news.posts.findOne({ source, state: 'shown' }))?._id ?? '';

  test('who is not signed in is sent to the door, who may not is refused', async () => {
    assert.equal((await world.visitor().get('/desk')).headers.get('location'), '/login?next=%2Fdesk');
    assert.equal((await world.visitor().post('/mine/bookmark', { post: 'x' })).status, 303);
    assert.equal((await reader.get('/desk')).status, 403);
    assert.equal((await reader.post('/desk/post/x', { do: 'hide' })).status, 403);
    assert.equal((await editor.post('/desk/role', { user: 'reader', role: 'editor' })).status, 403);
  });

  test('wrong passwords and the site’s own users do not get in', async () => {
    assert.equal((await world.visitor().post('/login', { name: 'editor', password: 'wrong' })).status, 403);
    assert.equal((await world.visitor().post('/login', { name: 'nobody', password: 'wrong' })).status, 403);
    assert.equal((await world.visitor().post('/login', { name: 'news-owner', password: world.secrets.services.owner })).status, 403);
  });

  test('forms from other sites are refused, and so is a way out after signing in', async () => {
    assert.equal((await editor.post('/desk/post/x', { do: 'hide' }, { origin: 'http://evil.example' })).status, 403);
    assert.equal((await editor.post('/desk/post/x', { do: 'hide' }, {})).status, 403);
    for (const next of ['//evil.example/', 'http://evil.example/', '/\\evil.example']) {
      const answer = await world.visitor().post('/login', { name: 'reader', password: world.secrets.people.reader, next });
      assert.equal(answer.headers.get('location'), '/mine', next);
    }
  });

  test('the cookie is for HTTP only, and the database has only its digest', async () => {
    const visitor = world.visitor();
    const answer = await visitor.post('/login', { name: 'reader', password: world.secrets.people.reader });
    assert.match(answer.headers.get('set-cookie') ?? '', /HttpOnly; SameSite=Lax/);
    const door = await world.as('door');
    const token = visitor.cookie.split('=')[1] ?? '';
    assert.equal(await door.sessions.findOne({ _id: token }), null);
    await visitor.post('/logout', {});
    assert.equal((await visitor.get('/mine')).status, 303);
  });

  test('a session that is over is over before the TTL monitor comes', async () => {
    const visitor = await world.signedIn('reader');
    const door = await world.as('door');
    await door.sessions.updateMany({ user: 'reader' }, { $set: { expires: new Date(Date.now() - 1000) } });
    assert.equal((await visitor.get('/mine')).status, 303);
    reader = await world.signedIn('reader');
  });

  test('bookmarks, read marks, followed sources, saved searches, and their feeds', async () => {
    const post = await somePost('papers-slowly');
    await reader.get(`/post/${post}`);
    assert.match((await reader.get('/source/papers-slowly')).text, new RegExp(`id="p-${post}" class="post read"`));
    await reader.post('/mine/read', { post, do: 'unread' });
    assert.doesNotMatch((await reader.get('/source/papers-slowly')).text, /class="post read"/);
    await reader.post('/mine/bookmark', { post, do: 'add' });
    await reader.post('/mine/bookmark', { post, do: 'add' });
    await reader.post('/mine/follow', { source: 'measure-twice', do: 'add' });
    await reader.post('/mine/search', { name: 'trees', query: 'q=trees' });
    const mine = (await reader.get('/mine')).text;
    assert.equal(mine.split(`/post/${post}"`).length - 1 >= 1, true);
    assert.match(mine, /Measure Twice/);
    assert.match(mine, /\/search\?q=trees/);
    const own = await (await world.as('reader')).readers.findOne({ _id: 'reader' });
    assert.equal(own?.bookmarks.length, 1);
    const feed = await world.visitor().get(`/mine/${own?.feedToken}/bookmarks.json`);
    assert.equal(JSON.parse(feed.text).items.length, 1);
    const followed = await world.visitor().get(`/mine/${own?.feedToken}/followed.atom`);
    assert.match(followed.text, /Measure Twice|benchmarks/);
    assert.equal((await reader.post('/mine/bookmark', { post: 'no-such', do: 'add' })).status, 404);
  });

  test('joining makes a user of the database with the role of readers', async () => {
    const visitor = world.visitor();
    assert.equal((await visitor.post('/join', { name: 'ada', email: 'ada@example.org', password: 'a long password' })).headers.get('location'), '/mine');
    assert.match((await visitor.get('/mine')).text, /ada@example\.org/);
    assert.equal((await world.visitor().post('/join', { name: 'ada', email: 'other@example.org', password: 'a long password' })).status, 409);
    assert.equal((await world.visitor().post('/join', { name: 'Bad Name', email: 'b@example.org', password: 'a long password' })).status, 400);
    assert.equal((await world.visitor().post('/join', { name: 'news-x', email: 'b@example.org', password: 'a long password' })).status, 400);
    assert.equal((await world.visitor().post('/join', { name: 'bob', email: 'b@example.org', password: 'short' })).status, 400);
  });

  test('addresses of readers are masked for editors by the database, and plain for owners', async () => {
    const page = (await editor.get('/desk/readers')).text;
    assert.match(page, /a\*\*\*@example\.org/);
    assert.doesNotMatch(page, /ada@example\.org/);
    // Not by the page: the editors' connection does not get it either, nor the token, however it asks.
    assert.deepEqual(await world.news.readers.findOne({ _id: 'ada' }, { projection: { email: 1, feedToken: 1 } }), { _id: 'ada', email: 'a***@example.org' });
    assert.equal(await world.news.readers.countDocuments({ email: 'ada@example.org' }), 0);
    const owner = await world.signedIn('owner');
    assert.match((await owner.get('/desk/readers')).text, /ada@example\.org/);
  });

  test('the roles of the database stop what a page would let pass', async () => {
    const code = (expected: number) => (error: unknown) => error instanceof MongoServerError && error.code === expected;
    const open = await world.as('public');
    const reading = await world.as('reader');
    const door = await world.as('door');
    const fetching = await world.as('fetcher');
    await assert.rejects(open.posts.updateOne({}, { $set: { title: 'x' } }), code(13));
    await assert.rejects(open.readers.findOne(), code(13));
    await assert.rejects(open.sessions.findOne(), code(13));
    await assert.rejects(reading.posts.updateOne({}, { $set: { title: 'x' } }), code(13));
    await assert.rejects(reading.changes.findOne(), code(13));
    await assert.rejects(world.news.posts.deleteMany({}), code(13));
    await assert.rejects(world.news.changes.deleteMany({}), code(13));
    await assert.rejects(world.news.readers.updateOne({}, { $set: { follows: [] } }), code(13));
    await assert.rejects(world.news.db.command({ createUser: 'x', pwd: 'y', roles: [] }), code(13));
    await assert.rejects(door.posts.findOne(), code(13));
    await assert.rejects(fetching.readers.findOne(), code(13));
    await assert.rejects(fetching.posts.deleteOne({}), code(13));
  });

  test('validators refuse documents that are none', async () => {
    const code = (error: unknown) => error instanceof MongoServerError && error.code === 121;
    const id = await somePost('runbook');
    await assert.rejects(world.news.posts.updateOne({ _id: id }, { $set: { state: 'lost' as never } }), code);
    await assert.rejects(world.news.posts.updateOne({ _id: id }, { $set: { title: '' } }), code);
    await assert.rejects(world.news.sources.updateOne({ _id: 'runbook' }, { $set: { why: 'short' } }), code);
  });

  test('accept, hide, pin, correct: each with its record, each undone', async () => {
    const id = (await world.news.posts.findOne({ state: 'waiting' }))?._id ?? '';
    const before = await world.news.posts.findOne({ _id: id });
    assert.equal((await world.visitor().get(`/post/${id}`)).status, 404);
    await editor.post(`/desk/post/${id}`, { do: 'accept' });
    assert.equal((await world.visitor().get(`/post/${id}`)).status, 200);
    await editor.post(`/desk/post/${id}`, { do: 'pin' });
    assert.match((await world.visitor().get('/')).text, /Pinned by the editors/);
    await editor.post(`/desk/post/${id}`, { do: 'correct', title: 'Corrected', author: 'Someone else', tags: 'one, Two Words' });
    const corrected = await world.news.posts.findOne({ _id: id });
    assert.deepEqual([corrected?.title, corrected?.author, corrected?.tags], ['Corrected', 'Someone else', ['one', 'two-words']]);
    const changes = await world.news.changes.find({ 'edits.id': id }).sort({ at: 1 }).toArray();
    assert.deepEqual(changes.map(({ who, what }) => [who, what]), [['editor', 'accept'], ['editor', 'pin'], ['editor', 'correct']]);
    for (const change of changes.reverse()) assert.equal((await editor.post('/desk/undo', { change: change._id.toHexString() })).status, 303);
    assert.deepEqual(await world.news.posts.findOne({ _id: id }), before);
    assert.equal((await editor.post('/desk/undo', { change: changes[0]?._id.toHexString() ?? '' })).status, 409);
    assert.equal(await world.news.changes.countDocuments({ 'edits.id': id, what: 'undo' }), 3);
  });

  test('what was changed since cannot be undone', async () => {
    const id = await somePost('runbook');
    await editor.post(`/desk/post/${id}`, { do: 'correct', title: 'First', author: '', tags: 'x' });
    await editor.post(`/desk/post/${id}`, { do: 'correct', title: 'Second', author: '', tags: 'x' });
    const first = await world.news.changes.findOne({ 'edits.after.title': 'First' });
    const answer = await editor.post('/desk/undo', { change: first?._id.toHexString() ?? '' });
    assert.equal(answer.status, 409);
    assert.match(answer.text, /changed since/);
    assert.equal((await world.news.posts.findOne({ _id: id }))?.title, 'Second');
  });

  test('merging changes two posts at once, and undoing both', async () => {
    const [one, two] = await world.news.posts.find({ source: 'measure-twice' }).sort({ _id: 1 }).limit(2).toArray();
    assert.ok(one && two);
    await editor.post(`/desk/post/${one._id}/merge`, { into: `${world.base}/post/${two._id}` });
    assert.equal((await world.visitor().get(`/post/${one._id}`)).headers.get('location'), `/post/${two._id}`);
    assert.match((await world.visitor().get(`/post/${two._id}`)).text, /Also at/);
    const change = await world.news.changes.findOne({ what: 'merge' });
    await editor.post('/desk/undo', { change: change?._id.toHexString() ?? '' });
    assert.deepEqual(await world.news.posts.find({ _id: { $in: [one._id, two._id] } }).sort({ _id: 1 }).toArray(), [one, two]);
  });

  test('two editors at the same post: both changes are kept, one after the other', async () => {
    const id = await somePost('nestor-notes');
    const owner = await world.signedIn('owner');
    const answers = await Promise.all(Array.from({ length: 10 }, (_none, i) => (i % 2 ? editor : owner).post(`/desk/post/${id}`, { do: 'correct', title: `Title ${i}`, author: '', tags: 'x' })));
    for (const { status } of answers) assert.equal(status, 303);
    const changes = await world.news.changes.find({ 'edits.id': id }).toArray();
    assert.equal(changes.length, 10);
    // They form a chain: each begins where another ended.
    const ends = new Set(changes.map(({ edits }) => edits[0]?.after.title));
    assert.equal(changes.filter(({ edits }) => !ends.has(edits[0]?.before.title)).length, 1);
    assert.equal(new Set(changes.map(({ edits }) => edits[0]?.before.title)).size, 10);
  });

  test('sources are added, described, paused, and fetched now', async () => {
    const fields = { id: 'fresh', name: 'Fresh', home: 'http://fresh.example/', feed: 'http://fresh.example/feed', kind: 'vendor', why: 'It was added by a test.', authors: 'A, B', lang: 'en', tags: 'x', refreshMinutes: '30' };
    assert.equal((await editor.post('/desk/sources', fields)).status, 303);
    assert.equal((await editor.post('/desk/sources', fields)).status, 409);
    assert.equal((await editor.post('/desk/sources', { ...fields, id: 'bad', feed: 'javascript:alert(1)' })).status, 400);
    await editor.post('/desk/source/fresh', { ...fields, do: 'save', name: 'Fresher' });
    await editor.post('/desk/source/fresh', { do: 'pause' });
    const source = await world.news.sources.findOne({ _id: 'fresh' });
    assert.deepEqual([source?.name, source?.state, source?.refreshMinutes], ['Fresher', 'paused', 30]);
    assert.match((await editor.get('/desk/source/fresh')).text, /paused the source fresh/);
  });

  test('an owner makes an editor of a reader', async () => {
    const owner = await world.signedIn('owner');
    assert.equal((await owner.post('/desk/role', { user: 'ada', role: 'editor' })).status, 303);
    const ada = world.visitor();
    await ada.post('/login', { name: 'ada', password: 'a long password' });
    assert.equal((await ada.get('/desk')).status, 200);
    await owner.post('/desk/role', { user: 'ada', role: 'reader' });
    assert.equal((await ada.get('/mine')).status, 303);
  });
});
