/** The documents of the news, one interface per collection. The validators in `collections.ts` hold the database to them. */
import type { Binary, ObjectId, Timestamp } from 'mongodb';

export type SourceKind = 'researcher' | 'project' | 'vendor' | 'practitioner';

/** One attempt to fetch a feed, as the source's page for editors lists it. */
export interface Attempt {
  at: Date;
  /** The HTTP status, or 0 when no answer came. */
  status: number;
  ms: number;
  bytes: number;
  /** How many posts were new. */
  fresh: number;
  /** Why it failed, absent when it did not. */
  error?: string;
}

/** What the fetcher knows of a source. */
export interface FetchState {
  /** When the feed is due. */
  next: Date;
  /** Until when a fetcher holds the source; the epoch when nobody does. */
  lease: Date;
  /** Which fetcher holds it. */
  holder?: string;
  etag?: string;
  lastModified?: string;
  /** Failures since the last success. */
  failures: number;
  lastOk?: Date;
  /** The newest attempts, newest first, at most 30. */
  history: Attempt[];
}

/** A source is one aggregate: who writes there, why it is on the list, and how its feed has been doing. */
export interface Source {
  /** A short name that stands in addresses: `/source/papers-slowly`. */
  _id: string;
  name: string;
  home: string;
  feed: string;
  /** Addresses the feed had before it moved for good. */
  formerly: string[];
  kind: SourceKind;
  /** Why the source is authoritative, in a sentence. */
  why: string;
  authors: string[];
  /** Whether posts may be shown in full; else they are excerpts. */
  full: boolean;
  /** Whether new posts wait until an editor accepts them. */
  review: boolean;
  lang: string;
  tags: string[];
  refreshMinutes: number;
  state: 'active' | 'paused';
  added: Date;
  fetch: FetchState;
}

export type PostState = 'shown' | 'waiting' | 'hidden' | 'merged';

/** What a post said before it was edited at its source. */
export interface Version {
  /** Until when it said so. */
  until: Date;
  title: string;
  html: string;
}

/** Another place where the same post stands. */
export interface Also {
  source: string;
  link: string;
}

/** A post with everything that is shown of it: one document, one read. */
export interface Post {
  /** Stands in the permanent address: `/post/what-a-page-holds-3f9a2c`. Never changes. */
  _id: string;
  source: string;
  sourceName: string;
  /** By which the post is recognized, see `post/identity.ts`. A unique index keeps two posts from having one in common. */
  keys: string[];
  link: string;
  title: string;
  author: string;
  published: Date;
  /** Where `published` comes from; `seen` when the feed's date was missing or absurd. */
  dateFrom: 'published' | 'updated' | 'seen';
  /** When the fetcher first saw the post: the order in which live pages show posts. */
  added: Date;
  /** When the source last changed the text; absent when it never did. */
  edited?: Date;
  /** Safe HTML: what `fetch/sanitize.ts` lets through. */
  html: string;
  excerpt: string;
  /** The words of the post without markup, for the text index. */
  text: string;
  /** For the text index, whose languages have other names than those of feeds. */
  textLanguage: string;
  lang: string;
  tags: string[];
  /** Hosts that the post links to, its own left out. */
  links: string[];
  pictures: string[];
  full: boolean;
  state: PostState;
  pinned: boolean;
  /** Digest of title and HTML: whether the source changed anything. */
  digest: string;
  /** Near-same texts have one of these in common, see `post/fingerprint.ts`. */
  bands: string[];
  also: Also[];
  versions: Version[];
  mergedInto?: string;
}

/** One document's part in a change: which fields it had before and has after. A field that was absent is null. */
export interface Edit {
  collection: 'posts' | 'sources';
  id: string;
  before: Record<string, unknown>;
  after: Record<string, unknown>;
}

/** What somebody did on the editor's side, with all that is needed to undo it. */
export interface Change {
  _id: ObjectId;
  at: Date;
  who: string;
  what: string;
  /** In words, for the list. */
  note: string;
  edits: Edit[];
  /** The change that this one undid. */
  undoes?: ObjectId;
  /** The change by which this one was undone. */
  undone?: ObjectId;
}

export interface SavedSearch {
  id: string;
  name: string;
  /** The query part of the search page's address. */
  query: string;
}

export interface Reader {
  _id: string;
  /** Editors see `a***@example.org`: the collection's masking policy. */
  email: string;
  joined: Date;
  follows: string[];
  bookmarks: { post: string; at: Date }[];
  searches: SavedSearch[];
  /** Stands in the addresses of the reader's own feeds; whoever knows it reads them. */
  feedToken: string;
}

/** A post that a reader has read. Forgotten after 400 days by a TTL index. */
export interface Read {
  _id: { reader: string; post: string };
  at: Date;
}

export type Role = 'reader' | 'editor' | 'owner';

export interface Session {
  /** SHA-256 of the cookie: who reads the collection cannot log in with it. */
  _id: string;
  user: string;
  role: Role;
  /** A TTL index ends the session then. */
  expires: Date;
}

/** A picture of a post. It comes from this site, so that readers ask nobody else. */
export interface Picture {
  _id: string;
  url: string;
  state: 'wanted' | 'here' | 'failed';
  tries: number;
  type?: string;
  bytes?: Binary;
}

export interface Robots {
  /** The origin, `https://example.org`. */
  _id: string;
  text: string;
  /** A TTL index drops the copy after a day. */
  at: Date;
}

/** A word of titles, for suggestions while typing. */
export interface Suggestion {
  _id: string;
  n: number;
}

/** When an outgoing feed last changed: what conditional requests are answered from. */
export interface FeedState {
  /** `all`, `source:x` or `tag:y`. */
  _id: string;
  changed: Date;
  n: number;
}

/** How far a follower of changes has come. */
export interface Position {
  _id: string;
  /** After this change. */
  token?: unknown;
  /** From this time on, when no change has come since everything was made anew. */
  at?: Timestamp;
}

/** One measurement of the time series collection `fetches`. */
export interface Measurement {
  at: Date;
  source: string;
  ms: number;
  status: number;
  failed: boolean;
}
