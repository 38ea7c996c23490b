/**
 * How the feeds answer: latencies and failures of a week, from the time series collection `fetches`. It keeps the
 * measurements of a source together in buckets, so that a week of them is a few documents to read.
 */
import type { Document } from 'mongodb';
import type { Reads } from '../../db/reads.js';
import type { Measurement } from '../../db/types.js';
import { lines, spread } from '../charts.js';
import { clock, dayOf } from '../dates.js';
import { html, type Html } from '../html.js';

const week = 7 * 86_400_000;

const measured: Document = {
  p: { $percentile: { input: '$ms', p: [0.5, 0.95], method: 'approximate' } },
  failed: { $sum: { $cond: ['$failed', 1, 0] } },
  n: { $sum: 1 },
};

/** Latencies and failures over time, in steps of so many minutes. */
export function overTime(from: Date, minutes: number): Document[] {
  return [{ $match: { at: { $gte: from } } }, { $group: { _id: { $dateTrunc: { date: '$at', unit: 'minute', binSize: minutes } }, ...measured } }, { $sort: { _id: 1 } }];
}

/** The same for each source, the slowest first. */
export function bySource(from: Date): Document[] {
  return [
    { $match: { at: { $gte: from } } },
    { $group: { _id: '$source', ...measured } },
    { $lookup: { from: 'sources', localField: '_id', foreignField: '_id', as: 'of', pipeline: [{ $project: { name: 1 } }] } },
    { $set: { name: { $ifNull: [{ $first: '$of.name' }, '$_id'] }, of: '$$REMOVE' } },
    { $sort: { p: -1, _id: 1 } },
    { $limit: 20 },
  ];
}

interface Measured {
  p: [number, number];
  failed: number;
  n: number;
}

/** Steps of a minute, a quarter of an hour or two hours: as many as a chart can show. */
function stepFor(ms: number): number {
  const hours = ms / 3600_000;
  return hours < 3 ? 1 : hours < 48 ? 15 : 120;
}

/** The section of the page of figures; nothing when nothing was measured. */
export async function fetching(reads: Reads, now: Date): Promise<Html | undefined> {
  const from = new Date(now.getTime() - week);
  const first = await reads.one<Measurement>('fetches', { at: { $gte: from } }, { sort: { at: 1 }, projection: { at: 1 } });
  if (!first) return undefined;
  const minutes = stepFor(now.getTime() - first.at.getTime());
  const [times, sources] = await Promise.all([
    reads.aggregate<Measured & { _id: Date }>('fetches', overTime(from, minutes)),
    reads.aggregate<Measured & { _id: string; name: string }>('fetches', bySource(from)),
  ]);
  const total = times.reduce((sum, { n }) => sum + n, 0);
  const failed = times.reduce((sum, one) => sum + one.failed, 0);
  const step = minutes === 1 ? 'minute' : minutes < 60 ? `${minutes} minutes` : `${minutes / 60} hours`;
  return html`<section id="fetching"><h2>How feeds answer</h2>
<p>${total} ${total === 1 ? 'fetch' : 'fetches'} in seven days, ${failed} failed. Milliseconds until a feed was read and kept, by ${step}.</p>
${lines('Milliseconds of a fetch over time', times.map(({ _id }) => `${dayOf(_id)}, ${clock(_id)}`), [{ name: 'median', values: times.map(({ p }) => p[0]) }, { name: '95 of 100', values: times.map(({ p }) => p[1]) }], 'ms', { name: 'failed', values: times.map((one) => one.failed) })}
<p>Median and 95 of 100 by source.</p>
${spread('Milliseconds of a fetch by source', sources.map((source) => ({ name: source.name, href: `/source/${source._id}`, from: source.p[0], to: source.p[1], label: `${Math.round(source.p[0])} to ${Math.round(source.p[1])} ms`, ...(source.failed > 0 && { warning: `${source.failed} of ${source.n} failed` }) })))}</section>`;
}
