/** Live pages: each open one is a response that stays open (server-sent events). One read serves them all. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { News } from '../db/connect.js';
import { dayOf, inWords } from '../site/dates.js';
import { article, listed } from '../site/posts.js';

const pulseMs = 25_000;
/** Beyond that the server says it is full instead of falling over. */
const mostPages = 20_000;
/** A page that was away for longer had better be loaded anew. */
const mostMissed = 20;

export class Live {
  readonly #pages = new Set<ServerResponse>();
  readonly #pulse = setInterval(() => this.#send(': pulse\n\n'), pulseMs).unref();

  constructor(readonly news: News) {}

  get size(): number {
    return this.#pages.size;
  }

  async join(request: IncomingMessage, response: ServerResponse, since: string | undefined): Promise<void> {
    if (this.#pages.size >= mostPages) {
      response.writeHead(503, { 'retry-after': '60' }).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' });
    response.write('retry: 2000\n\n');
    request.socket.setTimeout(0);
    request.socket.setNoDelay(true);
    // First a member, then what was missed: a post between the two comes twice, and the page knows it by its name.
    this.#pages.add(response);
    response.on('close', () => this.#pages.delete(response));
    const after = new Date(String(request.headers['last-event-id'] ?? since ?? ''));
    if (Number.isNaN(after.getTime())) return;
    const missed = await this.news.posts.find({ state: 'shown', added: { $gt: after } }, { projection: listed }).sort({ added: -1 }).limit(mostMissed).toArray();
    for (const post of missed.reverse()) response.write(eventOf(post as never));
  }

  /** Shows a new post on every open page. */
  async show(id: string): Promise<void> {
    if (!this.#pages.size) return;
    const post = await this.news.posts.findOne({ _id: id, state: 'shown' }, { projection: listed });
    if (post) this.#send(eventOf(post as never));
  }

  #send(text: string): void {
    for (const page of this.#pages) {
      // Whoever does not read is not waited for: the browser comes back and asks for what it missed.
      if (page.writableLength > 256 << 10) page.destroy();
      else page.write(text);
    }
  }

  close(): void {
    clearInterval(this.#pulse);
    for (const page of this.#pages) page.end();
  }
}

function eventOf(post: Parameters<typeof article>[0]): string {
  const day = dayOf(post.published);
  const content = { id: post._id, day, dayName: inWords(post.published), published: post.published.toISOString(), title: post.title, html: article(post).text };
  return `id: ${post.added.toISOString()}\nevent: post\ndata: ${JSON.stringify(content)}\n\n`;
}
