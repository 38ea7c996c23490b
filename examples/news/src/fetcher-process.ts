/** The fetcher as a process of its own: a feed of ten thousand posts keeps no reader waiting. Told by its environment. */
import { once } from 'node:events';
import { connectService, type Secrets } from './db/connect.js';
import { Fetcher } from './fetch/fetcher.js';
import { limits } from './fetch/http.js';

const { NEWS_URI = '', NEWS_SECRETS = '{}', NEWS_ALLOW = '', NEWS_HOST_PAUSE_MS } = process.env;
// Whoever forked this process says when to begin.
if (process.connected) await Promise.race([once(process, 'message'), once(process, 'disconnect')]);
if (process.send && !process.connected) process.exit();
const news = await connectService(NEWS_URI, 'fetcher', JSON.parse(NEWS_SECRETS) as Secrets);
const fetcher = new Fetcher(news, {
  limits: { ...limits, allowed: new Set(NEWS_ALLOW.split(',').filter(Boolean)) },
  ...(NEWS_HOST_PAUSE_MS && { hostPauseMs: Number(NEWS_HOST_PAUSE_MS) }),
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => fetcher.stop());
// Whoever started this process is gone: so is this one.
process.on('disconnect', () => fetcher.stop());
await fetcher.run();
await news.close();
