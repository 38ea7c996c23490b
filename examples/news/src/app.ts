/** The parts of the application put together, for `start.ts` and for tests. */
import { randomBytes } from 'node:crypto';
import { connectService, type Secrets } from './db/connect.js';
import { services, type Service } from './db/roles.js';
import type { Role } from './db/types.js';
import { Follower } from './live/follower.js';
import { Live } from './live/live.js';
import { Site } from './site/server.js';

const secret = () => randomBytes(18).toString('base64url');

export function newSecrets(): Secrets {
  return {
    root: secret(),
    services: Object.fromEntries((Object.keys(services) as Service[]).map((name) => [name, secret()])) as Record<Service, string>,
    people: Object.fromEntries((['reader', 'editor', 'owner'] as Role[]).map((name) => [name, randomBytes(6).toString('base64url')])) as Record<Role, string>,
  };
}

/** Opens the site: pools of connections, the follower of changes, live pages. */
export function openSite(uri: string, secrets: Secrets): Promise<Site> {
  return Site.open(uri, secrets, async (pools) => {
    const live = new Live(pools.public);
    const follower = new Follower(pools.follower);
    follower.onPost = (id) => void live.show(id).catch(() => {});
    await follower.start();
    return [live, follower];
  });
}

export { connectService };
