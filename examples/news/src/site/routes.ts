/** The addresses of the site. */
import type { ServerResponse } from 'node:http';
import type { Role } from '../db/types.js';
import * as desk from '../editor/desk.js';
import * as deskForms from '../editor/forms.js';
import * as mine from '../reader/mine.js';
import type { Context, Reply } from './context.js';
import * as account from './pages/account.js';
import * as digest from './pages/digest.js';
import { explain } from './pages/explain.js';
import * as feeds from './pages/feeds.js';
import * as lists from './pages/lists.js';
import * as post from './pages/post.js';
import { searchPage, suggest } from './pages/search.js';
import { figures } from './pages/stats.js';

export interface Route {
  method: 'GET' | 'POST';
  path: RegExp;
  run(context: Context, parts: string[], response: ServerResponse): Promise<Reply>;
  /** Who may come here; absent for everybody. */
  role?: Role;
  /** Whether `/explain` shows the page's queries. */
  explains?: boolean;
}

const shown = (path: RegExp, run: Route['run']): Route => ({ method: 'GET', path, run, explains: true });
const plain = (path: RegExp, run: Route['run']): Route => ({ method: 'GET', path, run });
const form = (path: RegExp, run: Route['run'], role?: Role): Route => ({ method: 'POST', path, run, ...(role && { role }) });
const only = (role: Role, path: RegExp, run: Route['run']): Route => ({ method: 'GET', path, run, role });

export const routes: Route[] = [
  shown(/^\/$/, lists.front),
  shown(/^\/day\/([^/]+)$/, lists.day),
  shown(/^\/week\/([^/]+)$/, lists.week),
  shown(/^\/archive$/, lists.archive),
  shown(/^\/sources$/, lists.sources),
  shown(/^\/source\/([^/]+)$/, lists.source),
  shown(/^\/tags$/, lists.tags),
  shown(/^\/tag\/([^/]+)$/, lists.tag),
  shown(/^\/post\/([^/]+)$/, post.postPage),
  plain(/^\/picture\/([0-9a-f]{32})$/, post.picture),
  shown(/^\/search$/, searchPage),
  plain(/^\/suggest$/, suggest),
  shown(/^\/stats$/, figures),
  shown(/^\/digest$/, digest.digests),
  shown(/^\/digest\/(\d{4}-W\d\d)$/, digest.digest),
  plain(/^\/digest\/(\d{4}-W\d\d)\.txt$/, digest.digestText),
  plain(/^\/about$/, account.about),
  plain(/^\/explain$/, explain),

  plain(/^\/live$/, post.live),
  plain(/^\/feed\.(atom|json)$/, feeds.all),
  plain(/^\/source\/([^/]+)\/feed\.(atom|json)$/, feeds.ofSource),
  plain(/^\/tag\/([^/]+)\/feed\.(atom|json)$/, feeds.ofTag),
  plain(/^\/digest\.(atom|json)$/, feeds.ofDigests),
  plain(/^\/mine\/([\w-]{20,40})\/(followed|bookmarks|search-[\w-]+)\.(atom|json)$/, feeds.ofReader),

  plain(/^\/login$/, account.loginPage),
  form(/^\/login$/, account.logIn),
  form(/^\/logout$/, account.logOut),
  plain(/^\/join$/, account.joinPage),
  form(/^\/join$/, account.join),

  only('reader', /^\/mine$/, mine.mine),
  form(/^\/mine\/bookmark$/, mine.bookmark, 'reader'),
  form(/^\/mine\/read$/, mine.markRead, 'reader'),
  form(/^\/mine\/follow$/, mine.follow, 'reader'),
  form(/^\/mine\/search$/, mine.saveSearch, 'reader'),
  form(/^\/mine\/search\/drop$/, mine.dropSearch, 'reader'),

  only('editor', /^\/desk$/, desk.overview),
  only('editor', /^\/desk\/post\/([^/]+)$/, desk.postDesk),
  only('editor', /^\/desk\/source\/([^/]+)$/, desk.sourceDesk),
  only('editor', /^\/desk\/changes$/, desk.changes),
  only('editor', /^\/desk\/readers$/, desk.readers),
  form(/^\/desk\/post\/([^/]+)$/, deskForms.changePost, 'editor'),
  form(/^\/desk\/post\/([^/]+)\/merge$/, deskForms.merge, 'editor'),
  form(/^\/desk\/source\/([^/]+)$/, deskForms.changeSource, 'editor'),
  form(/^\/desk\/sources$/, deskForms.addSource, 'editor'),
  form(/^\/desk\/undo$/, deskForms.undoChange, 'editor'),
  form(/^\/desk\/role$/, deskForms.changeRole, 'owner'),
];
