/**
 * Roles of the database behind the roles of the site.
 *
 * The site has one pool of connections for each role, and a request runs on the pool of whoever sends it. What an
 * editor's page may do is thus decided twice: by the page, and by the database, which knows nothing of pages.
 */
import { type Db, MongoServerError } from 'mongodb';

type Privilege = [collections: string, actions: string];

interface RoleDefinition {
  inherits: string[];
  /** Names of collections and actions, divided by blanks. */
  privileges: Privilege[];
  /** Actions on the whole database. */
  database?: string;
}

const edit = 'find insert update';

export const roles: Record<string, RoleDefinition> = {
  // Everybody: reads what is published, and the profiler's records of it (the footer).
  newsPublic: {
    inherits: [],
    privileges: [
      ['posts sources pictures suggestions feedstate fetches system.profile', 'find'],
      ['posts', 'listIndexes'],
    ],
  },
  newsReader: {
    inherits: ['newsPublic'],
    privileges: [
      ['readers', 'find update unmask'],
      ['reads', 'find insert update remove'],
    ],
  },
  // Sees readers, but masked: `unmask` is not among the actions.
  newsEditor: {
    inherits: ['newsPublic'],
    privileges: [
      ['posts', 'find update'],
      ['sources changes', edit],
      ['readers', 'find'],
    ],
  },
  newsOwner: {
    inherits: ['newsEditor'],
    privileges: [['readers', 'unmask']],
    database: 'viewUser grantRole revokeRole',
  },
  newsFetcher: {
    inherits: [],
    privileges: [
      ['posts sources pictures', edit],
      ['changes fetches', 'insert'],
      ['robots', 'find insert update remove'],
    ],
  },
  // Follows changes and writes what is derived from them.
  newsFollower: {
    inherits: [],
    privileges: [
      ['posts', 'find changeStream'],
      ['suggestions feedstate positions', 'find insert update remove'],
    ],
  },
  // The door: makes readers' accounts and keeps sessions. It cannot read a post.
  newsDoor: {
    inherits: [],
    privileges: [
      ['sessions', 'find insert update remove'],
      ['readers', 'find insert update unmask'],
    ],
    database: 'createUser grantRole viewUser',
  },
};

/** The pools of connections, and the role that each logs in with. */
export const services = {
  public: 'newsPublic',
  reader: 'newsReader',
  editor: 'newsEditor',
  owner: 'newsOwner',
  fetcher: 'newsFetcher',
  follower: 'newsFollower',
  door: 'newsDoor',
} as const;

export type Service = keyof typeof services;

/** Makes or renews the roles. */
export async function makeRoles(db: Db): Promise<void> {
  for (const [role, { inherits, privileges, database }] of Object.entries(roles)) {
    const granted = privileges.flatMap(([collections, actions]) =>
      collections.split(' ').map((collection) => ({ resource: { db: db.databaseName, collection }, actions: actions.split(' ') })),
    );
    if (database) granted.push({ resource: { db: db.databaseName, collection: '' }, actions: database.split(' ') });
    await makeOrUpdate(db, 'Role', role, { privileges: granted, roles: inherits });
  }
}

/** Makes a user or gives the user these roles and this password. */
export async function makeUser(db: Db, name: string, password: string, role: string): Promise<void> {
  await makeOrUpdate(db, 'User', name, { pwd: password, roles: [role] });
}

async function makeOrUpdate(db: Db, what: 'Role' | 'User', name: string, fields: Record<string, unknown>): Promise<void> {
  try {
    await db.command({ [`create${what}`]: name, ...fields, writeConcern: { w: 1 } });
  } catch (error) {
    // 51002 and 51003: a role or a user of this name is there.
    if (!(error instanceof MongoServerError) || ![51002, 51003].includes(Number(error.code))) throw error;
    await db.command({ [`update${what}`]: name, ...fields, writeConcern: { w: 1 } });
  }
}
