/** Collections, validators and indexes. Run at each start: what is there already stays. */
import { type CreateIndexesOptions, type Db, type IndexSpecification, MongoServerError } from 'mongodb';

const string = { bsonType: 'string' };
const date = { bsonType: 'date' };
const bool = { bsonType: 'bool' };
const strings = { bsonType: 'array', items: string };
const short = { bsonType: 'string', maxLength: 2000 };

function object(properties: Record<string, unknown>, optional: string[] = []): Record<string, unknown> {
  return { bsonType: 'object', required: Object.keys(properties).filter((name) => !optional.includes(name)), properties };
}

const web = { bsonType: 'string', pattern: '^https?://' };

const posts = object(
  {
    _id: { bsonType: 'string', pattern: '^[\\p{Ll}\\p{Lo}\\p{N}-]{1,120}$' },
    source: string,
    sourceName: string,
    keys: { bsonType: 'array', minItems: 1, maxItems: 50, items: string },
    link: web,
    title: { bsonType: 'string', minLength: 1, maxLength: 500 },
    author: { bsonType: 'string', maxLength: 200 },
    published: date,
    dateFrom: { enum: ['published', 'updated', 'seen'] },
    added: date,
    edited: date,
    html: string,
    excerpt: short,
    text: string,
    textLanguage: string,
    lang: string,
    tags: { bsonType: 'array', maxItems: 12, items: { bsonType: 'string', maxLength: 40 } },
    links: strings,
    pictures: strings,
    full: bool,
    state: { enum: ['shown', 'waiting', 'hidden', 'merged'] },
    pinned: bool,
    digest: string,
    bands: strings,
    also: { bsonType: 'array', items: object({ source: string, link: web }) },
    versions: { bsonType: 'array', maxItems: 20, items: object({ until: date, title: string, html: string }) },
    mergedInto: string,
  },
  ['edited', 'mergedInto'],
);

const sources = object({
  _id: { bsonType: 'string', pattern: '^[a-z0-9-]{1,40}$' },
  name: { bsonType: 'string', minLength: 1, maxLength: 100 },
  home: web,
  feed: web,
  formerly: strings,
  kind: { enum: ['researcher', 'project', 'vendor', 'practitioner'] },
  why: { bsonType: 'string', minLength: 10, maxLength: 500 },
  authors: strings,
  full: bool,
  review: bool,
  lang: { bsonType: 'string', pattern: '^[a-z]{2,3}(-[A-Za-z0-9]+)*$' },
  tags: strings,
  refreshMinutes: { bsonType: ['int', 'long', 'double'], minimum: 0.01, maximum: 10080 },
  state: { enum: ['active', 'paused'] },
  added: date,
  fetch: {
    bsonType: 'object',
    required: ['next', 'lease', 'failures', 'history'],
    properties: { next: date, lease: date, failures: { bsonType: 'int', minimum: 0 }, history: { bsonType: 'array', maxItems: 30 } },
  },
});

const changes = object(
  {
    at: date,
    who: string,
    what: string,
    note: short,
    edits: {
      bsonType: 'array',
      items: object({ collection: { enum: ['posts', 'sources'] }, id: string, before: { bsonType: 'object' }, after: { bsonType: 'object' } }),
    },
    undoes: { bsonType: 'objectId' },
    undone: { bsonType: 'objectId' },
  },
  ['undoes', 'undone'],
);

const readers = object({
  _id: { bsonType: 'string', pattern: '^[a-z0-9_-]{2,30}$' },
  email: { bsonType: 'string', maxLength: 200 },
  joined: date,
  follows: { bsonType: 'array', maxItems: 500, items: string },
  bookmarks: { bsonType: 'array', maxItems: 5000, items: object({ post: string, at: date }) },
  searches: { bsonType: 'array', maxItems: 50, items: object({ id: string, name: string, query: string }) },
  feedToken: string,
});

type Index = [IndexSpecification, CreateIndexesOptions?];

/** The indexes, each with the question that it answers. */
export const indexes: Record<string, Index[]> = {
  posts: [
    // No two posts have an identity in common, whoever fetches at the same time.
    [{ keys: 1 }, { unique: true }],
    // The front page, days and weeks: only what is shown, so that hidden posts cost nothing.
    [{ published: -1 }, { name: 'shown', partialFilterExpression: { state: 'shown' } }],
    // What a live page missed while it was away.
    [{ added: -1 }],
    [{ source: 1, published: -1 }],
    [{ tags: 1, published: -1 }],
    // Near-same texts have at least one band in common.
    [{ bands: 1 }],
    // A few of thousands: partial indexes have only them.
    [{ pinned: 1, published: -1 }, { partialFilterExpression: { pinned: true } }],
    [{ state: 1, added: -1 }, { name: 'waiting', partialFilterExpression: { state: 'waiting' } }],
  ],
  sources: [
    [{ feed: 1 }, { unique: true }],
    // Which feed is due.
    [{ 'fetch.next': 1 }, { partialFilterExpression: { state: 'active' } }],
  ],
  changes: [[{ at: -1 }], [{ 'edits.id': 1, at: -1 }]],
  readers: [
    [{ email: 1 }, { unique: true }],
    [{ feedToken: 1 }, { unique: true }],
  ],
  reads: [
    [{ '_id.reader': 1, '_id.post': 1 }],
    [{ at: 1 }, { expireAfterSeconds: 400 * 24 * 3600 }],
  ],
  sessions: [[{ expires: 1 }, { expireAfterSeconds: 0 }]],
  robots: [[{ at: 1 }, { expireAfterSeconds: 24 * 3600 }]],
  pictures: [[{ state: 1 }, { partialFilterExpression: { state: 'wanted' } }]],
};

const validators: Record<string, Record<string, unknown> | undefined> = {
  posts,
  sources,
  changes,
  readers,
  reads: undefined,
  sessions: undefined,
  robots: undefined,
  pictures: undefined,
  suggestions: undefined,
  feedstate: undefined,
  positions: undefined,
};

/** Makes the collections with their validators, sets the masking policy and builds the indexes. */
export async function makeCollections(db: Db): Promise<void> {
  const there = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map((c) => c.name));
  await Promise.all(
    Object.entries(validators).map(async ([name, schema]) => {
      const validator = schema ? { $jsonSchema: schema } : {};
      if (there.has(name)) await db.command({ collMod: name, validator, writeConcern: { w: 1 } });
      else await db.createCollection(name, { validator });
      const list = indexes[name] ?? [];
      if (list.length) await db.collection(name).createIndexes(list.map(([key, options]) => ({ key: key as Record<string, 1 | -1>, ...options })));
    }),
  );
  // Whoever has no right to unmask sees a***@example.org instead of a reader's address, and no feed token at all.
  await db.command({ collMod: 'readers', masking: { email: 'email', feedToken: 'hide' }, writeConcern: { w: 1 } });
}

/** Whether an error says that the server does not have what was asked for. */
export function isUnsupported(error: unknown): boolean {
  return error instanceof MongoServerError && [2, 9, 20, 59, 67, 72, 115, 197, 238].includes(Number(error.code));
}
