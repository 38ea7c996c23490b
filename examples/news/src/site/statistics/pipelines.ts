/** The statistics as pipelines. */
import type { Document } from 'mongodb';
import type { Reads } from '../../db/reads.js';
import { SHOWN_LINKS, SHOWN_SOURCES, type Cadence, type Links, type SourceMonths, type Statistics, type Word } from './statistics.js';

/** Posts per source and month of the last twelve months. */
function perSourceAndMonth(from: Date): Document[] {
  return [
    { $match: { state: 'shown', published: { $gte: from } } },
    { $group: { _id: { source: '$source', month: { $dateTrunc: { date: '$published', unit: 'month' } } }, name: { $first: '$sourceName' }, n: { $sum: 1 } } },
    { $group: { _id: '$_id.source', name: { $first: '$name' }, months: { $push: { month: '$_id.month', n: '$n' } }, total: { $sum: '$n' } } },
    { $sort: { total: -1, _id: 1 } },
    { $limit: SHOWN_SOURCES },
  ];
}

/** The median pause between two posts of a source, by a window over its posts. */
const cadence: Document[] = [
  { $match: { state: 'shown' } },
  { $project: { source: 1, sourceName: 1, published: 1 } },
  { $setWindowFields: { partitionBy: '$source', sortBy: { published: 1 }, output: { previous: { $shift: { output: '$published', by: -1 } } } } },
  { $match: { previous: { $ne: null } } },
  { $group: { _id: '$source', name: { $first: '$sourceName' }, days: { $median: { input: { $divide: [{ $subtract: ['$published', '$previous'] }, 86_400_000] }, method: 'approximate' } } } },
  { $sort: { days: 1, _id: 1 } },
  { $limit: SHOWN_SOURCES },
];

/** Who links to whom: hosts that posts link to, joined with the sources that live there. */
const linksBetween: Document[] = [
  { $match: { state: 'shown' } },
  { $unwind: '$links' },
  { $group: { _id: { source: '$source', host: '$links' }, name: { $first: '$sourceName' }, n: { $sum: 1 } } },
  { $lookup: { from: 'sources', let: { host: '$_id.host' }, pipeline: [{ $match: { $expr: { $regexMatch: { input: '$home', regex: { $concat: ['^https?://(www\\.)?', { $replaceAll: { input: '$$host', find: '.', replacement: '\\.' } }, '(/|:|$)'] } } } } }, { $project: { name: 1 } }], as: 'to' } },
  { $set: { to: { $ifNull: [{ $first: '$to.name' }, '$_id.host'] } } },
  { $match: { $expr: { $ne: ['$to', '$name'] } } },
  { $sort: { n: -1, '_id.source': 1, '_id.host': 1 } },
  { $limit: SHOWN_LINKS },
];

export const byPipelines = (reads: Reads): Statistics => ({
  perSourceAndMonth: (from) => reads.aggregate<SourceMonths>('posts', perSourceAndMonth(from)),
  cadence: () => reads.aggregate<Cadence>('posts', cadence),
  words: () => reads.find<Word>('suggestions', {}, { sort: { n: -1, _id: 1 }, limit: 20 }),
  links: () => reads.aggregate<Links>('posts', linksBetween),
});
