/**
 * Who is who. People are users of the database: their passwords are checked by it (SCRAM), their roles are its roles.
 * A session is a document that a TTL index ends; the cookie has a random token, the document its digest.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { MongoServerError } from 'mongodb';
import { connect, type News } from '../db/connect.js';
import type { Role } from '../db/types.js';
import { HttpError, type User } from './context.js';

/** The highest first: an owner's inherited roles are listed too. */
const siteRoles: [string, Role][] = [['newsOwner', 'owner'], ['newsEditor', 'editor'], ['newsReader', 'reader']];
const days = 30;
const cookieName = 'news';

const digest = (token: string) => createHash('sha256').update(token).digest('hex');

export class Sessions {
  /** Failed attempts by address, so that nobody tries passwords at leisure. */
  readonly #failed = new Map<string, { n: number; until: number }>();

  constructor(
    readonly uri: string,
    readonly door: News,
  ) {}

  #token(request: IncomingMessage): string | undefined {
    return new RegExp(`(?:^|;\\s*)${cookieName}=([\\w-]{20,100})`).exec(request.headers.cookie ?? '')?.[1];
  }

  async userOf(request: IncomingMessage): Promise<User | undefined> {
    const token = this.#token(request);
    if (!token) return undefined;
    // The TTL monitor comes once a minute; a session is over at its time nevertheless.
    const session = await this.door.sessions.findOne({ _id: digest(token), expires: { $gt: new Date() } });
    return session ? { name: session.user, role: session.role } : undefined;
  }

  /** Logs in and returns the cookie to set. */
  async logIn(request: IncomingMessage, name: string, password: string): Promise<string> {
    const from = request.socket.remoteAddress ?? '';
    const failed = this.#failed.get(from);
    if (failed && failed.n >= 10 && failed.until > Date.now()) throw new HttpError(429, 'Too many attempts: try again in five minutes.');
    let role: Role;
    try {
      role = await this.#roleOf(name, password);
    } catch (error) {
      if (!(error instanceof MongoServerError) || error.code !== 18) throw error;
      if (this.#failed.size > 10_000) this.#failed.clear();
      this.#failed.set(from, { n: failed && failed.until > Date.now() ? failed.n + 1 : 1, until: Date.now() + 5 * 60_000 });
      throw new HttpError(403, 'Name and password do not go together.');
    }
    this.#failed.delete(from);
    const token = randomBytes(24).toString('base64url');
    await this.door.sessions.insertOne({ _id: digest(token), user: name, role, expires: new Date(Date.now() + days * 24 * 3600_000) });
    return `${cookieName}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${days * 24 * 3600}`;
  }

  /** Asks the database itself, by logging in to it as that user. */
  async #roleOf(name: string, password: string): Promise<Role> {
    // The site's own users are no people.
    if (!/^[a-z0-9_-]{2,30}$/.test(name) || name.startsWith('news-') || !password) throw new HttpError(403, 'Name and password do not go together.');
    const person = await connect(this.uri, name, password, { maxPoolSize: 1, serverSelectionTimeoutMS: 5000 });
    try {
      const { authInfo } = await person.db.command({ connectionStatus: 1 });
      const has = new Set((authInfo.authenticatedUserRoles as { role: string }[]).map(({ role }) => role));
      const role = siteRoles.find(([name]) => has.has(name))?.[1];
      if (!role) throw new HttpError(403, 'This user is none of the news.');
      return role;
    } finally {
      await person.close();
    }
  }

  async logOut(request: IncomingMessage): Promise<string> {
    const token = this.#token(request);
    if (token) await this.door.sessions.deleteOne({ _id: digest(token) });
    return `${cookieName}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`;
  }

  /** Makes a reader: a user of the database and the reader's document. */
  async join(name: string, email: string, password: string): Promise<void> {
    if (!/^[a-z0-9_-]{2,30}$/.test(name) || name.startsWith('news-')) throw new HttpError(400, 'A name has 2 to 30 small letters, digits, dashes and underscores.');
    if (!/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email) || email.length > 200) throw new HttpError(400, 'That does not look like a mail address.');
    if (password.length < 8 || password.length > 200) throw new HttpError(400, 'A password has at least 8 characters.');
    try {
      await this.door.readers.insertOne({ _id: name, email, joined: new Date(), follows: [], bookmarks: [], searches: [], feedToken: randomBytes(18).toString('base64url') });
    } catch (error) {
      if (error instanceof MongoServerError && error.code === 11000) throw new HttpError(409, 'The name or the address is taken.');
      throw error;
    }
    await this.door.db.command({ createUser: name, pwd: password, roles: ['newsReader'] });
  }

  /** Ends all sessions of a user: a new role begins with the next login. */
  async endAll(user: string): Promise<void> {
    await this.door.sessions.deleteMany({ user });
  }
}
