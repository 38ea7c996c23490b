/** robots.txt, by robots-parser. Copies are kept in the database, where a TTL index drops them after a day. */
import robotsParser from 'robots-parser';
import type { News } from '../db/connect.js';
import { type Answer, get, type Limits, userAgent } from './http.js';

const parse = robotsParser as unknown as (url: string, text: string) => { isAllowed(url: string, agent?: string): boolean | undefined };

/** Whether the site lets feed readers have this address. RFC 9309: no robots.txt allows, a server that fails forbids. */
export async function mayFetch(news: News, address: string, limits: Limits): Promise<boolean> {
  const origin = new URL(address).origin;
  let text = (await news.robots.findOne({ _id: origin }))?.text;
  if (text === undefined) {
    const answer: Answer = await get(`${origin}/robots.txt`, {}, { ...limits, bytes: 512 << 10 });
    if (answer.status >= 500) return false;
    text = answer.status === 200 ? answer.body.toString('utf8') : '';
    await news.robots.updateOne({ _id: origin }, { $set: { text, at: new Date() } }, { upsert: true });
  }
  return parse(`${origin}/robots.txt`, text).isAllowed(address, userAgent) !== false;
}
