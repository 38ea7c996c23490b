import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { type Db, MongoServerError } from 'mongodb';
import { connect } from '../../db/connect.js';
import { World } from '../world.js';

/** The queries of the README, in its order: indented lines that begin with `db.`. */
function queries(): string[] {
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  return [...readme.matchAll(/(?:^ {4}.*\n)+/gm)]
    .map(([block]) => block.replace(/\/\/ .*$/gm, '').trim())
    .filter((block) => block.startsWith('db.'));
}

/** A value that comes later, of which one asks fields and methods now, as one may in mongosh. */
function later(value: Promise<unknown>): unknown {
  return new Proxy(() => {}, {
    get: (_target, name) => {
      if (name === 'then') return value.then.bind(value);
      return later(value.then((of) => {
        const field = (of as Record<string | symbol, unknown>)[name];
        return typeof field === 'function' ? field.bind(of) : field;
      }));
    },
    apply: (_target, _self, args) => later(value.then((call) => (call as (...args: unknown[]) => unknown)(...args))),
  });
}

/** `db` as mongosh has it, as far as the README needs it. */
function shell(db: Db): unknown {
  const collection = (name: string): unknown => {
    const of = db.collection(name);
    return new Proxy({}, {
      get: (_target, method: string) => {
        if (method === 'find') return (filter: object, projection?: object) => later(Promise.resolve(of.find(filter, { ...(projection && { projection }) })));
        if (method in of) return (...args: unknown[]) => later(Promise.resolve((of as unknown as Record<string, (...args: unknown[]) => unknown>)[method]?.(...args)));
        return collection(`${name}.${method}`);
      },
    });
  };
  const own: Record<string, unknown> = { getSiblingDB: () => shell(db), aggregate: (pipeline: object[]) => db.aggregate(pipeline) };
  return new Proxy({}, { get: (_target, name: string) => own[name] ?? collection(name) });
}

async function run(db: Db, query: string): Promise<unknown> {
  const result = await new Function('db', `return ${query}`)(shell(db));
  return typeof result?.toArray === 'function' ? result.toArray() : result;
}

describe('the README', { timeout: 900_000 }, () => {
  const world = World.forSuite();
  before(async () => {
    // What it speaks of: a second round in which a post is edited, a page that was asked for, an act of an editor.
    await world.due();
    await (await world.fetcher()).round();
    const editor = await world.signedIn('editor');
    const post = await world.addPost('To be hidden');
    await editor.post(`/desk/post/${post._id}`, { do: 'hide' });
    const other = await world.addPost('To be pinned');
    await editor.post(`/desk/post/${other._id}`, { do: 'pin' });
    await world.guest.get('/');
  });

  test('each of its queries does what it says, for the user it names', async () => {
    const editor = await connect(world.nestor.uri, 'editor', world.secrets.people.editor);
    try {
      const list = queries();
      assert.ok(list.length >= 11, `${list.length} queries`);
      const refused: Record<string, number> = { updateOne: 121, deleteOne: 13 };
      for (const query of list) {
        const expected = refused[/^db\.\w+\.(\w+)/.exec(query)?.[1] ?? ''];
        if (expected) {
          await assert.rejects(run(editor.db, query), (error) => error instanceof MongoServerError && error.code === expected, query);
          continue;
        }
        const found = await run(editor.db, query);
        assert.ok(Array.isArray(found) ? found.length > 0 : found, query);
        if (query.includes('email')) for (const { email } of found as { email: string }[]) assert.match(email, /^.\*\*\*@/);
        if (query.includes('winningPlan')) assert.match(JSON.stringify(found), /pinned_1_published_-1/);
      }
    } finally {
      await editor.close();
    }
  });
});
