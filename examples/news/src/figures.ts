/**
 * The figures of the README, measured: `node dist/figures.js` with NESTOR_BIN naming a release build. Ten thousand posts,
 * a thousand open live pages.
 */
import http from 'node:http';
import { readFileSync } from 'node:fs';
import type { News } from './db/connect.js';
import type { Post } from './db/types.js';
import { bandsOf } from './post/fingerprint.js';
import { chance } from './sample/library.js';
import { World } from './test/world.js';

const many = 10_000;

function sorted(values: number[]): { p50: number; p95: number; max: number } {
  const list = [...values].sort((a, b) => a - b);
  const at = (part: number) => Number((list[Math.min(list.length - 1, Math.floor(list.length * part))] as number).toFixed(2));
  return { p50: at(0.5), p95: at(0.95), max: at(1) };
}

const rss = (pid: number | string) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;

/** More posts, made of the words of those that are there. */
async function multiply(world: World, news: News): Promise<void> {
  const there = await news.posts.find({ state: 'shown' }).toArray();
  const fetcher = await world.as('fetcher');
  const fresh: Post[] = [];
  for (let i = there.length; i < many; i++) {
    const pick = (what: string) => there[Math.floor(chance(`${what} ${i}`) * there.length)] as Post;
    const [one, two] = [pick('one'), pick('two')];
    const text = `${one.text} ${two.text}`;
    fresh.push({ ...one, _id: `many-${i}`, keys: [`many:${i}`], title: `${one.title}, ${two.title}`.slice(0, 500), html: one.html + two.html, text, bands: bandsOf(text), tags: [...new Set([...one.tags, ...two.tags])], published: new Date(Date.now() - Math.floor(chance(`at ${i}`) * 365 * 86_400_000)), added: new Date(Date.now() - i), also: [], versions: [] });
  }
  for (let i = 0; i < fresh.length; i += 500) await fetcher.posts.insertMany(fresh.slice(i, i + 500));
}

const world = await World.make();
try {
  await world.fetchAll();
  const news = await world.as('editor');
  await multiply(world, news);
  await world.settled();
  const visitor = world.visitor();

  const pages = async (paths: string[], rounds: number) => {
    const server: number[] = [];
    let size = 0;
    let examined = '';
    for (let i = 0; i < rounds; i++) {
      const page = await visitor.get(paths[i % paths.length] as string);
      if (page.status !== 200) throw new Error(`${paths[i % paths.length]}: ${page.status}`);
      if (i >= 20) server.push(Number(/page;dur=([\d.]+)/.exec(page.headers.get('server-timing') ?? '')?.[1]));
      size = Math.max(size, Buffer.byteLength(page.text));
      examined = /\d+ keys and \d+ documents/.exec(page.text)?.[0] ?? '';
    }
    return { ...sorted(server), kB: Number((size / 1000).toFixed(1)), examined };
  };
  console.log(`posts: ${await news.posts.countDocuments()}`);
  console.log('front page, server ms:', await pages(['/'], 300));
  const some = await news.posts.find({ state: 'shown' }, { limit: 50 }).toArray();
  console.log('post page:', await pages(some.map(({ _id }) => `/post/${encodeURIComponent(_id)}`), 200));
  if (await world.site.searchable()) {
    const words = ['index', 'transactions', 'b-tree', '"snapshot isolation"', 'write amplification', 'replication lag', 'deadlock -sql', 'checksum', 'vacuum', 'collation'];
    console.log('search:', await pages(words.map((q) => `/search?q=${encodeURIComponent(q)}`), 200));
  }
  console.log('figures page:', await pages(['/stats'], 40));
  console.log('figures page in SQL:', await pages(['/stats?in=sql'], 40));

  // From the end of the insert to the last of a thousand open pages.
  const before = rss('self');
  const ends: http.ClientRequest[] = [];
  let told = 0;
  let latest = 0;
  const open = (count: number) => Promise.all(Array.from({ length: count }, () => new Promise<void>((resolve, reject) => {
    const request = http.get(`${world.base}/live`, { agent: false }, (response) => {
      resolve();
      response.on('data', (chunk: Buffer) => {
        if (!chunk.includes('event: post')) return;
        told++;
        latest = performance.now();
      });
    });
    request.on('error', reject);
    ends.push(request);
  })));
  for (let i = 0; i < 10; i++) await open(100);
  const delays: number[] = [];
  const fetcher = await world.as('fetcher');
  for (let i = 0; i < 20; i++) {
    told = 0;
    const template = some[0] as Post;
    await fetcher.posts.insertOne({ ...template, _id: `live-${i}`, keys: [`live:${i}`], title: `Live ${i}`, published: new Date(), added: new Date(), also: [], versions: [] });
    const committed = performance.now();
    while (told < 1000) await new Promise((resolve) => setTimeout(resolve, 2));
    delays.push(latest - committed);
  }
  console.log('1,000 live pages: all told after ms of the commit', sorted(delays));
  console.log(`memory of the site with 1,000 live pages and their 1,000 clients in one process: ${rss('self').toFixed(0)} MB (before: ${before.toFixed(0)} MB)`);
  for (const request of ends) request.destroy();
} finally {
  await world.close();
}
