/** Statistics, each one pipeline: posts per source and month, cadence, words, links, the fetcher's latencies. */
import type { Document } from 'mongodb';
import type { Context, Page } from '../context.js';
import { bars, rowsOfBars } from '../charts.js';
import { html } from '../html.js';
import { fetching } from './fetching.js';

/** Posts per source and month of the last twelve months. */
export function perSourceAndMonth(from: Date): Document[] {
  return [
    { $match: { state: 'shown', published: { $gte: from } } },
    { $group: { _id: { source: '$source', month: { $dateTrunc: { date: '$published', unit: 'month' } } }, name: { $first: '$sourceName' }, n: { $sum: 1 } } },
    { $group: { _id: '$_id.source', name: { $first: '$name' }, months: { $push: { month: '$_id.month', n: '$n' } }, total: { $sum: '$n' } } },
    { $sort: { total: -1, _id: 1 } },
    { $limit: 20 },
  ];
}

/** The median pause between two posts of a source, by a window over its posts. */
export const cadence: Document[] = [
  { $match: { state: 'shown' } },
  { $project: { source: 1, sourceName: 1, published: 1 } },
  { $setWindowFields: { partitionBy: '$source', sortBy: { published: 1 }, output: { previous: { $shift: { output: '$published', by: -1 } } } } },
  { $match: { previous: { $ne: null } } },
  { $group: { _id: '$source', name: { $first: '$sourceName' }, days: { $median: { input: { $divide: [{ $subtract: ['$published', '$previous'] }, 86_400_000] }, method: 'approximate' } } } },
  { $sort: { days: 1, _id: 1 } },
  { $limit: 20 },
];

/** Who links to whom: hosts that posts link to, joined with the sources that live there. */
export const linksBetween: Document[] = [
  { $match: { state: 'shown' } },
  { $unwind: '$links' },
  { $group: { _id: { source: '$source', host: '$links' }, name: { $first: '$sourceName' }, n: { $sum: 1 } } },
  { $lookup: { from: 'sources', let: { host: '$_id.host' }, pipeline: [{ $match: { $expr: { $regexMatch: { input: '$home', regex: { $concat: ['^https?://(www\\.)?', { $replaceAll: { input: '$$host', find: '.', replacement: '\\.' } }, '(/|:|$)'] } } } } }, { $project: { name: 1 } }], as: 'to' } },
  { $set: { to: { $ifNull: [{ $first: '$to.name' }, '$_id.host'] } } },
  { $match: { $expr: { $ne: ['$to', '$name'] } } },
  { $sort: { n: -1, '_id.source': 1, '_id.host': 1 } },
  { $limit: 15 },
];

export async function figures(context: Context): Promise<Page> {
  const now = new Date();
  const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11, 1));
  const { reads } = context;
  const [sources, pauses, words, links, fetches] = await Promise.all([
    reads.aggregate<{ _id: string; name: string; months: { month: Date; n: number }[] }>('posts', perSourceAndMonth(from)),
    reads.aggregate<{ _id: string; name: string; days: number }>('posts', cadence),
    reads.find<{ _id: string; n: number }>('suggestions', {}, { sort: { n: -1, _id: 1 }, limit: 20 }),
    reads.aggregate<{ _id: { source: string; host: string }; name: string; to: string; n: number }>('posts', linksBetween),
    fetching(reads, now),
  ]);
  const months = Array.from({ length: 12 }, (_none, i) => new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + i, 1)));
  const monthName = new Intl.DateTimeFormat('en-GB', { month: 'short', timeZone: 'UTC' });
  return {
    kind: 'page',
    title: 'Figures',
    main: html`<h1>Figures</h1>
<p class="lead">Each chart is one pipeline; <code>explain</code> below shows them.</p>
<section><h2>Posts by source and month</h2>${rowsOfBars('Posts by source and month', months.map((month) => monthName.format(month)), sources.map((source) => ({
  name: source.name,
  href: `/source/${source._id}`,
  values: months.map((month) => source.months.find((one) => one.month.getTime() === month.getTime())?.n ?? 0),
})))}</section>
<section><h2>Days between posts</h2><p>The median pause between two posts of a source.</p>${bars('Days between posts', pauses.map(({ _id, name, days }) => ({ name, href: `/source/${_id}`, value: days, label: days.toFixed(1) })))}</section>
<section><h2>Words in titles</h2>${bars('Words in titles', words.map(({ _id, n }) => ({ name: _id, href: `/search?q=${encodeURIComponent(_id)}`, value: n })))}</section>
<section><h2>Who links to whom</h2>${links.length ? html`<div class="scroll"><table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Posts</th></tr></thead><tbody>${links.map((link) => html`<tr><td><a href="/source/${link._id.source}">${link.name}</a></td><td>${link.to}</td><td>${link.n}</td></tr>`)}</tbody></table></div>` : html`<p>No links between sources yet.</p>`}</section>
${fetches}`,
  };
}
