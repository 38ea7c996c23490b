/** Pictures of posts: fetched once, kept, and shown from here, so that a reader's browser asks no third party. */
import { Binary } from 'mongodb';
import type { News } from '../db/connect.js';
import { get, type Limits } from './http.js';

const maxBytes = 2 << 20;

/** What the first bytes say. SVG is not among them: it is a program. */
export function pictureType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(head)) return 'image/gif';
  if (/^RIFF....WEBP/s.test(head)) return 'image/webp';
  if (/^....ftypavif/s.test(head)) return 'image/avif';
  return undefined;
}

/** Fetches the pictures that posts want, one after the other. */
export async function fetchPictures(news: News, limits: Limits, most = 20): Promise<void> {
  for (const picture of await news.pictures.find({ state: 'wanted' }, { limit: most }).toArray()) {
    try {
      const { status, body } = await get(picture.url, { accept: 'image/*' }, { ...limits, bytes: maxBytes });
      const type = status === 200 ? pictureType(body) : undefined;
      if (!type) throw new Error(`status ${status}, no picture`);
      await news.pictures.updateOne({ _id: picture._id }, { $set: { state: 'here', type, bytes: new Binary(body) } });
    } catch {
      await news.pictures.updateOne({ _id: picture._id }, { $set: { state: picture.tries >= 2 ? 'failed' : 'wanted' }, $inc: { tries: 1 } });
    }
  }
}
