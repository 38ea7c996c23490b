/** One request: who sends it, and with which rights its queries run. */
import type { IncomingMessage } from 'node:http';
import type { News } from '../db/connect.js';
import { Reads } from '../db/reads.js';
import type { Reader, Role } from '../db/types.js';
import type { Html } from './html.js';
import type { Site } from './server.js';

export interface User {
  name: string;
  role: Role;
}

export class Context {
  readonly begun = performance.now();
  readonly reads: Reads;
  #reader: Promise<Reader | null> | undefined;

  constructor(
    readonly site: Site,
    readonly request: IncomingMessage,
    readonly url: URL,
    readonly user: User | undefined,
    readonly form: URLSearchParams,
  ) {
    this.reads = new Reads(this.news);
  }

  /** The pool of connections of the user's role. */
  get news(): News {
    return this.site.pools[this.user?.role ?? 'public'];
  }

  /** Whether the user may do what a role may. */
  may(role: Role): boolean {
    const order: Role[] = ['reader', 'editor', 'owner'];
    return this.user !== undefined && order.indexOf(this.user.role) >= order.indexOf(role);
  }

  /** The reader's own document. An editor is a reader too, so this goes by the readers' pool. */
  reader(): Promise<Reader | null> {
    this.#reader ??= this.user ? this.site.pools.reader.readers.findOne({ _id: this.user.name }) : Promise.resolve(null);
    return this.#reader;
  }
}

/** A page before it has its frame. */
export interface Page {
  kind: 'page';
  status?: number;
  title: string;
  main: Html;
  /** Addresses of feeds for the page's head. */
  feeds?: { title: string; href: string }[];
  /** Pages that show new posts as they come. */
  live?: boolean;
  /** Not for search engines. */
  unlisted?: boolean;
}

export interface Raw {
  kind: 'raw';
  status?: number;
  type: string;
  body: string | Buffer;
  headers?: Record<string, string>;
}

export interface Redirect {
  kind: 'redirect';
  to: string;
  headers?: Record<string, string | string[]>;
}

/** The handler has taken the response and answers by itself. */
export interface Taken {
  kind: 'taken';
}

export type Reply = Page | Raw | Redirect | Taken;

/** An answer that is no success, with a sentence for whoever reads it. */
export class HttpError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}
